// The bar above, and drawing: at the start, for another method, another width, and for paper.

function theme() {
    const dark = document.documentElement.dataset.theme
        ? document.documentElement.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
    const button = html("button", { type: "button", class: "theme", id: "theme", "aria-pressed": dark }, dark ? "Light" : "Dark");
    button.addEventListener("click", () => {
        const next = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
        document.documentElement.dataset.theme = next;
        button.setAttribute("aria-pressed", next === "dark");
        button.textContent = next === "dark" ? "Light" : "Dark";
        try {
            localStorage.setItem("gramfold-theme", next);
        } catch {
            /* nowhere to remember it */
        }
    });
    return button;
}
function find(words) {
    if (!words) return null;
    const names = [...new Set(groups.flatMap((group) => group.names))];
    return names.find((name) => name === words) ?? null;
}
function bar() {
    const tools = html("div", { class: "tools" });
    if (first) {
        const list = html(
            "datalist",
            { id: "clients" },
            ...[...new Set(groups.flatMap((group) => group.names))].map((name) => html("option", { value: name })),
        );
        const field = html("input", {
            id: "client",
            type: "search",
            list: "clients",
            placeholder: "client",
            autocomplete: "off",
            "aria-label": "highlight a client",
        });
        field.addEventListener("input", () => pin(find(field.value.trim())));
        field.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" || find(field.value.trim())) return;
            const near = groups
                .flatMap((group) => group.names)
                .find((name) => name.toLowerCase().includes(field.value.trim().toLowerCase()));
            if (near !== undefined) {
                field.value = near;
                pin(near);
            }
        });
        tools.append(html("label", {}, html("span", {}, "Highlight"), field), list);
        if (groups.length === 1) {
            const select = html(
                "select",
                { id: "method", "aria-label": "method in figures of one method" },
                ...first.methods.map((method, m) => html("option", { value: m }, method.name)),
            );
            select.value = state.method;
            select.addEventListener("change", () => {
                state.method = Number(select.value);
                drawAll((kind) => kind.focused);
            });
            tools.append(html("label", {}, html("span", {}, "Method"), select));
        }
    }
    tools.append(theme());
    document.getElementById("bar").append(tools, html("div", { id: "who", "aria-live": "polite" }));
}

function drawAll(which = () => true) {
    const boxes = [...document.querySelectorAll("figure[data-figure]")];
    for (const figure of boxes) {
        const spec = page.figures[figure.dataset.figure];
        const kind = kinds[spec.kind];
        if (!kind || !which(kind)) continue;
        figure.querySelector(".plot")?.remove();
        const box = html("div", { class: "plot" });
        figure.append(box);
        kind(spec, box);
    }
    plots = plots.filter((plot) => plot.svg.isConnected);
}

try {
    const kept = localStorage.getItem("gramfold-theme");
    if (kept) document.documentElement.dataset.theme = kept;
} catch {
    /* nothing was kept */
}
if (first) {
    const personal = (method, m) => m !== first.alone && !method.shared?.every((value, i) => value === method.values[i]);
    const chose = (method) => Object.values(method.chosen).some(Array.isArray);
    const worthOf = (method, m) =>
        (method.mean === null ? -Infinity : (less ? -1 : 1) * method.mean) -
        (personal(method, m) ? 0 : 1e9) -
        (chose(method) ? 0 : 1e6);
    const worths = first.methods.map(worthOf);
    state.method = worths.indexOf(Math.max(...worths)); // the best of those that are personal and chose, where there are any
}
bar();
drawAll();
state.drawn = innerWidth;
let waiting = 0;
addEventListener("resize", () => {
    if (innerWidth === state.drawn) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
        state.drawn = innerWidth;
        drawAll();
    }, 120);
});
// on paper figures are as wide as the sheet, whatever the window is: they are drawn anew rather than shrunk
addEventListener("beforeprint", () => {
    main.classList.add("paper");
    drawAll();
});
addEventListener("afterprint", () => {
    main.classList.remove("paper");
    drawAll();
});
addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
        pin(null);
        say(event, "");
    }
});
const asked = /^#client=(.*)$/.exec(location.hash);
if (asked) pin(find(decodeURIComponent(asked[1])));
