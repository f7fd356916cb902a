// Tables that can be sorted, and the one of all clients, made when it is opened.

const units = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, ms: 1e-3, s: 1, min: 60, h: 3600 };
/** What a cell is worth when rows are sorted; words are worth themselves. */
function worth(words) {
    const found = [
        ...words.replace(/[[<]/g, "").matchAll(/([-+\u2212]?\d[\d.]*(?:e[-+]?\d+)?)\s*(B|kB|MB|GB|ms|s|min|h)?(?![a-z])/gi),
    ];
    if (!found.length || !/^[-+\u2212[<\d]/.test(words)) return words === "\u2013" ? -Infinity : words;
    const timed = found.filter(([, , named]) => named);
    if (timed.length) return timed.reduce((sum, [, number, named]) => sum + number * units[named], 0);
    return Number(found[0][1].replace("\u2212", "-"));
}
function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const order = (a, b) =>
        typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    heads.forEach((head, c) => {
        const button = html("button", { type: "button" }, head.textContent);
        head.replaceChildren(button);
        button.addEventListener("click", () => {
            const down = head.getAttribute("aria-sort") !== "descending";
            for (const other of heads) other.removeAttribute("aria-sort");
            head.setAttribute("aria-sort", down ? "descending" : "ascending");
            const keyed = [...body.rows].map((row) => [worth(row.cells[c].firstChild?.textContent ?? ""), row]);
            body.append(...keyed.sort(([a], [b]) => (down ? -1 : 1) * order(a, b)).map(([, row]) => row));
        });
    });
}
document.querySelectorAll("table.sortable").forEach(sortable);
for (const details of document.querySelectorAll("details.all")) {
    details.addEventListener("toggle", () => {
        if (details.querySelector("table")) return;
        const group = groups[details.dataset.group];
        const head = html(
            "tr",
            {},
            ...["client", "train", "test", ...(group.skew ? ["skew"] : []), ...group.methods.map((method) => method.name)].map(
                (name) => html("th", { scope: "col" }, name),
            ),
        );
        const body = html("tbody");
        group.names.forEach((name, i) => {
            const cells = [
                name,
                group.train[i],
                group.test[i],
                ...(group.skew ? [group.skew[i]] : []),
                ...group.methods.map((method) => sure(method, i)),
            ];
            const row = html(
                "tr",
                { "data-client": name, class: name === state.pinned ? "on" : null },
                ...cells.map((cell) => html("td", {}, String(cell))),
            );
            row.addEventListener("click", () => pin(name === state.pinned ? null : name));
            body.append(row);
        });
        const table = html("table", {}, html("thead", {}, head), body);
        sortable(table);
        details.append(html("div", { class: "scroll" }, table));
    });
}
