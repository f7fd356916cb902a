// One client in all figures at once: pointed at, clicked, found by name or walked to by keys.

const tip = html("div", { class: "tip", hidden: "" });
document.body.append(tip);
function say(event, words) {
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    const { offsetWidth: wide, offsetHeight: tall } = tip;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 6))}px`;
    tip.style.top = `${event.clientY + 18 + tall > innerHeight ? event.clientY - tall - 10 : event.clientY + 18}px`;
}
function nearest(plot, event, most = Infinity) {
    const frame = plot.svg.getBoundingClientRect();
    const ratio = plot.svg.viewBox.baseVal.width / frame.width;
    const x = (event.clientX - frame.left) * ratio;
    const y = (event.clientY - frame.top) * ratio;
    let best = null;
    let least = most;
    for (const point of plot.points) {
        const away = plot.flat ? Math.abs(point.x - x) : Math.hypot(point.x - x, point.y - y);
        if (away < least) [best, least] = [point, away];
    }
    return best;
}
const sentence = (group, i, words) =>
    [`client ${group.names[i]}`, `${group.train[i]} train, ${group.test[i]} test`, words].filter(Boolean).join("\n");

/** A figure with a mark for each client: `points` are {i, x, y}, `mark` gives what is drawn over client i. */
function follow(box, plot) {
    const overlay = draw("g", { class: "mark" });
    plot.svg.append(overlay);
    plot.svg.setAttribute("tabindex", "0");
    plot.svg.dataset.clients = "";
    plot.show = (name) => {
        const i = plot.group.index.get(name);
        overlay.replaceChildren(...(i === undefined ? [] : plot.mark(i)));
    };
    plot.svg.addEventListener("pointermove", (event) => {
        const found = nearest(plot, event, plot.flat ? Infinity : 60);
        if (event.pointerType !== "touch") say(event, found && sentence(plot.group, found.i, plot.says(found)));
        highlight(found ? plot.group.names[found.i] : state.pinned);
        plot.about?.(found);
    });
    plot.svg.addEventListener("pointerleave", (event) => {
        say(event, "");
        plot.about?.(null);
        highlight(state.pinned);
    });
    plot.svg.addEventListener("click", (event) => {
        const found = nearest(plot, event);
        const name = found ? plot.group.names[found.i] : null;
        pin(name === state.pinned ? null : name);
    });
    plot.svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (!step || !plot.order.length) return;
        event.preventDefault();
        const now = plot.order.indexOf(plot.group.index.get(state.pinned));
        const next = now < 0 ? (step > 0 ? 0 : plot.order.length - 1) : (now + step + plot.order.length) % plot.order.length;
        pin(plot.group.names[plot.order[next]]);
    });
    plot.box = box;
    plots.push(plot);
    plot.show(state.client);
}
function highlight(name) {
    if (name === state.client) return;
    state.client = name;
    for (const plot of plots) plot.show(name);
    tellWho();
}
function pin(name) {
    state.pinned = name;
    highlight(name);
    const field = document.getElementById("client");
    if (field && field.value !== (name ?? "") && document.activeElement !== field) field.value = name ?? "";
    for (const row of document.querySelectorAll("tr[data-client]")) row.classList.toggle("on", row.dataset.client === name);
    try {
        history.replaceState(
            null,
            "",
            name === null ? location.pathname + location.search : `#client=${encodeURIComponent(name)}`,
        );
    } catch {
        /* a page without an address of its own */
    }
}
function tellWho() {
    const who = document.getElementById("who");
    if (!who) return;
    const parts = [];
    for (const group of groups) {
        const i = group.index.get(state.client);
        if (i === undefined) continue;
        const skew = group.skew ? `, skew ${group.skew[i]}` : "";
        if (!parts.length) parts.push(html("b", {}, `client ${group.names[i]}: `));
        parts.push(html("span", {}, `${group.train[i]} train, ${group.test[i]} test${skew}`));
        parts.push(...group.methods.map((method) => html("span", {}, `${method.name} ${sure(method, i)}`)));
    }
    who.replaceChildren(...parts);
}
const ring = (x, y, r = 5) => draw("circle", { cx: px(x), cy: px(y), r });
function flag(area, x, y, words) {
    const end = x > area.width * 0.6;
    return text(x + (end ? -9 : 9), y < 16 ? y + 14 : y - 7, cut(words, 24), end ? "end" : "start");
}
const ranked = (values) =>
    values
        .map((_, i) => i)
        .filter((i) => values[i] !== null)
        .sort((a, b) => values[a] - values[b]);
const label = (group, i) => `client ${group.names[i]}`;
