// Figures in which a method is a mark, and those of benches.

const shapes = [
    (x, y, r) => `M${px(x - r)},${px(y)}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0z`,
    (x, y, r) => `M${px(x - r)},${px(y - r)}h${2 * r}v${2 * r}h${-2 * r}z`,
    (x, y, r) => `M${px(x)},${px(y - 1.2 * r)}l${1.2 * r},${2.1 * r}h${-2.4 * r}z`,
    (x, y, r) => `M${px(x)},${px(y - 1.35 * r)}l${1.35 * r},${1.35 * r}l${-1.35 * r},${1.35 * r}l${-1.35 * r},${-1.35 * r}z`,
    (x, y, r) => `M${px(x)},${px(y + 1.2 * r)}l${1.2 * r},${-2.1 * r}h${-2.4 * r}z`,
];
const dash = (s) => [null, "6 3", "2 3", "9 3 2 3"][Math.floor(s / 8) % 4];
const shape = (s, x, y, r = 4) => draw("path", { class: s % 2 ? "shape" : "shape full", d: shapes[s % shapes.length](x, y, r) });
/** A line with a shape at its last place, or at the last `marks` of them. */
function curve(name, s, places, marks) {
    const made = draw("g", { class: `series c${s % 8}`, "data-method": name });
    if (places.length > 1) {
        const thin = Math.max(1, Math.floor(places.length / 500));
        const kept = places.filter((_, k) => k % thin === 0 || k === places.length - 1);
        made.append(
            draw("polyline", { points: kept.map(([x, y]) => `${px(x)},${px(y)}`).join(" "), "stroke-dasharray": dash(s) }),
        );
    }
    if (marks) made.append(...places.slice(-marks).map(([x, y]) => shape(s, x, y)));
    return made;
}
function key(names) {
    const list = html("ul", { class: "key" });
    names.forEach((name, s) => {
        const sample = draw(
            "svg",
            { viewBox: "0 0 26 12", "aria-hidden": "true" },
            draw(
                "g",
                { class: `series c${s % 8}` },
                draw("line", { x1: 0, x2: 26, y1: 6, y2: 6, "stroke-dasharray": dash(s) }),
                shape(s, 13, 6),
            ),
        );
        const item = html("li", { class: `c${s % 8}`, "data-method": name }, sample, name);
        item.addEventListener("pointerenter", () => emphasise(name));
        item.addEventListener("pointerleave", () => emphasise(null));
        list.append(item);
    });
    return list;
}
function emphasise(name) {
    if (name === state.emphasised) return;
    state.emphasised = name;
    main.classList.toggle("one-method", name !== null);
    for (const part of main.querySelectorAll("[data-method]")) part.classList.toggle("on", part.dataset.method === name);
}

kinds.lines = (spec, box) => {
    const series = spec.series.map((one) => ({ ...one, points: one.points.filter(([x, y]) => x !== null && y !== null) }));
    const all = series.flatMap((one) => one.points);
    if (!all.length) return void box.append(html("p", { class: "soft" }, "Nothing was measured here."));
    const words = all.some(([x]) => typeof x === "string") ? [...new Set(all.map(([x]) => String(x)))] : null;
    const place = (x) => (words ? words.indexOf(String(x)) : x);
    const area = frame(box, {
        xs: all.map(([x]) => place(x)),
        ys: all.map(([, y]) => y),
        x: { log: spec.log && !words },
        y: { room: 0.06, cap: spec.yform === "percent" ? 100 : null },
        height: 280,
        xform: spec.xform ?? "number",
        yform: spec.yform ?? "number",
        xlabel: spec.x,
        ylabel: spec.y,
        label: `${spec.y} against ${spec.x}`,
        words,
    });
    const points = [];
    series.forEach((one, s) => {
        const places = one.points.map(([x, y]) => [area.x(place(x)), area.y(y)]);
        one.points.forEach(([x, y], k) => points.push({ s, name: one.name, x: places[k][0], y: places[k][1], at: x, value: y }));
        area.put(curve(one.name, s, places, places.length > 24 ? 1 : places.length));
    });
    if (series.length > 1 && series.length <= 10) labels(area, series, points);
    if (series.length > 1) box.append(key(series.map((one) => one.name)));
    const plot = { svg: area.svg, points };
    area.svg.addEventListener("pointermove", (event) => {
        const found = nearest(plot, event, 40);
        const x = found && (typeof found.at === "string" ? found.at : forms[spec.xform ?? "number"](found.at));
        say(event, found && `${found.name}\n${forms[spec.yform ?? "number"](found.value)} at ${x}`);
        emphasise(found && series.length > 1 ? found.name : null);
    });
    area.svg.addEventListener("pointerleave", (event) => {
        say(event, "");
        emphasise(null);
    });
};
/** Names beside the ends of lines, where they hide nothing. */
function labels(area, series, points) {
    const taken = points.map(({ x, y }) => [x - 5, y - 5, x + 5, y + 5]);
    points.forEach((to, k) => {
        const from = points[k - 1];
        if (!from || from.s !== to.s) return;
        const parts = Math.min(Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 8), 60);
        for (let t = 1; t < parts; t++)
            taken.push(
                [-1, -1, 1, 1].map(
                    (by, side) =>
                        by + (side % 2 ? from.y + ((to.y - from.y) * t) / parts : from.x + ((to.x - from.x) * t) / parts),
                ),
            );
    });
    series.forEach((one, s) => {
        const end = points.findLast((point) => point.s === s);
        if (!end) return;
        const wide = 7.2 * Math.min(one.name.length, 20);
        const tries = [
            [end.x + 8, end.y - 7],
            [end.x - 8 - wide, end.y - 7],
            [end.x - wide / 2, end.y - 20],
            [end.x - wide / 2, end.y + 6],
        ];
        const free = tries.find(
            ([x, y]) =>
                x >= area.left &&
                x + wide <= area.right + 8 &&
                y > 14 &&
                y + 14 < area.bottom &&
                taken.every(([a, b, c, d]) => x > c || x + wide < a || y > d || y + 14 < b),
        );
        if (!free) return;
        taken.push([free[0], free[1], free[0] + wide, free[1] + 14]);
        area.put(
            draw("g", { class: `series c${s % 8}`, "data-method": one.name }, text(free[0], free[1] + 11, cut(one.name, 20))),
        );
    });
}

kinds.intervals = (spec, box) => {
    const rows = spec.rows.filter((row) => row.mean !== null);
    const narrow = box.clientWidth < 560;
    const left = narrow ? 8 : Math.min(20 + 7.2 * Math.max(...rows.map((row) => row.name.length), 1), 210);
    const row = narrow ? 46 : 34;
    const area = sheet(box, 12 + row * rows.length + 34, `mean ${unit} over seeds and its confidence interval, by method`);
    const x = scale(
        rows.flatMap((one) => [...one.values, one.low, one.high, one.mean]),
        left + 8,
        area.width - 56,
        within,
    );
    for (const mark of x.marks(Math.floor((area.width - left - 56) / 70))) {
        area.put(
            line(x(mark), 6, x(mark), area.height - 28, "grid"),
            text(x(mark), area.height - 10, forms[axis](mark), "middle"),
        );
    }
    rows.forEach((one, k) => {
        const y = 10 + row * (k + 0.5) + (narrow ? 8 : 0);
        area.put(
            named(
                narrow ? left : left - 8,
                narrow ? y - 15 : y + 4,
                one.name,
                narrow ? 40 : 28,
                narrow ? "start" : "end",
                "name",
            ),
        );
        if (one.low !== null) area.put(line(x(one.low), y, x(one.high), y, "interval"));
        area.put(
            dots(
                one.values.filter((value) => value !== null).map((value) => [x(value), y]),
                3.6,
                0.6,
            ),
            line(x(one.mean), y - 9, x(one.mean), y + 9, "mean"),
        );
        area.put(text(area.width - 48, y + 4, shown(one.mean), "start", "value"));
    });
};

kinds.bars = (spec, box) => {
    const narrow = box.clientWidth < 480;
    const left = narrow ? 4 : Math.min(16 + 7.2 * Math.max(...spec.rows.map((row) => row.name.length)), 180);
    const row = narrow ? 38 : 26;
    const area = sheet(box, row * spec.rows.length + 6, `${spec.title}, by method`);
    const totals = spec.rows.map((one) => one.parts.reduce((a, b) => a + b, 0));
    const x = scale([0, ...totals], left, area.width - 62, { low: 0, room: 0 });
    spec.rows.forEach((one, k) => {
        const y = row * k + (narrow ? 16 : 4);
        area.put(named(narrow ? left : left - 8, narrow ? y - 3 : y + 13, one.name, 26, narrow ? "start" : "end", "name"));
        let start = 0;
        one.parts.forEach((part, p) => {
            const made = draw("rect", {
                class: `filled c${p % 8}`,
                x: px(x(start)),
                y,
                width: Math.max(px(x(start + part) - x(start) - 0.5), 0),
                height: 17,
            });
            made.append(draw("title", {}, `${one.name}, ${spec.parts[p]}: ${forms[spec.form](part)}`));
            area.put(made);
            start += part;
        });
        area.put(text(x(start) + 5, y + 13, forms[spec.form](totals[k]), "start", "value"));
    });
    const list = html("ul", { class: "key" });
    spec.parts.forEach((name, p) =>
        list.append(
            html(
                "li",
                {},
                draw(
                    "svg",
                    { viewBox: "0 0 26 12", "aria-hidden": "true" },
                    draw("rect", { class: `filled c${p % 8}`, width: 26, height: 12 }),
                ),
                name,
            ),
        ),
    );
    box.append(list);
};

kinds.reliability = (spec, box) => {
    const about = ({ name, error }) => [
        html("b", {}, name),
        html("span", { class: "soft" }, ` ECE ${error === null ? "\u2013" : error.toFixed(3)}`),
    ];
    // of a rare class all probabilities are small: the axes end where the largest of any method does
    const top = spec.named
        ? Math.min(100, 1.1 * Math.max(...spec.panels.flatMap((one) => one.bins.flatMap(([, sure, right]) => [sure, right])), 1))
        : 100;
    panels(box, spec.panels, about, (panel, { name, bins }) => {
        const area = frame(panel, {
            xs: [0, top],
            ys: [0, top],
            x: { low: 0, high: top },
            y: { low: 0, high: top },
            height: 180,
            left: 42,
            top: 8,
            bottom: 34,
            right: 18,
            xform: "percent",
            yform: "percent",
            xlabel: "",
            ylabel: "",
            label: `reliability of ${name}: the part that was right against confidence`,
        });
        area.put(line(area.x(0), area.y(0), area.x(top), area.y(top), "diagonal"));
        const most = Math.max(...bins.map(([n]) => n), 1);
        area.put(
            draw(
                "g",
                { class: "series c0" },
                draw("polyline", { points: bins.map(([, sure, right]) => `${px(area.x(sure))},${px(area.y(right))}`).join(" ") }),
            ),
        );
        for (const [n, sure, right] of bins) {
            const dot = dots([[area.x(sure), area.y(right)]], 2 + 5 * Math.sqrt(n / most), 0.85);
            const words = spec.named ? `P(${spec.named}) ${sure} %, found ${right} %` : `confidence ${sure} %, right ${right} %`;
            dot.append(draw("title", {}, `${n} samples, ${words}`));
            area.put(dot);
        }
    });
};

kinds.heat = (spec, box) => {
    const { columns: across, rows, values } = spec;
    const known = values.flat().filter((value) => value !== null);
    if (!known.length) return void box.append(html("p", { class: "soft" }, "Nothing was measured here."));
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const left = Math.min(16 + 7 * Math.max(...rows.map((name) => Math.min(String(name).length, 18))), 140);
    const tall = 28;
    const area = sheet(box, 24 + tall * rows.length + 6, `${spec.title}: ${spec.y} against ${spec.x}`);
    const wide = Math.min((area.width - left - 4) / across.length, 120);
    across.forEach((name, c) =>
        area.put(named(left + (c + 0.5) * wide, 14, String(name), Math.max(Math.floor(wide / 7), 3), "middle", "name")),
    );
    rows.forEach((name, r) => {
        const y = 22 + tall * r;
        area.put(named(left - 6, y + 19, String(name), 18, "end", "name"));
        across.forEach((column, c) => {
            const value = values[r][c];
            const level = value === null ? 0 : high > low ? (value - low) / (high - low) : 0.5;
            const cell = draw("rect", {
                class: value === null ? "empty" : "cell",
                x: px(left + c * wide),
                y,
                width: px(wide - 2),
                height: tall - 2,
                "fill-opacity": value === null ? null : (0.08 + 0.84 * level).toFixed(2),
            });
            cell.append(
                draw("title", {}, `${spec.y} ${name}, ${spec.x} ${column}: ${value === null ? "not measured" : short(value)}`),
            );
            area.put(cell);
            const words =
                value === null
                    ? "\u2013"
                    : known.every((one) => Math.abs(one) >= 10 && Math.abs(one) < 1000)
                      ? value.toFixed(1)
                      : short(value);
            if (wide >= 6.6 * words.length + 3)
                area.put(text(left + (c + 0.5) * wide - 1, y + 18, words, "middle", level > 0.55 ? "name on-dark" : "name"));
        });
    });
    box.append(
        html(
            "p",
            { class: "says soft" },
            `Rows: ${spec.y}; columns: ${spec.x}. The fainter, the lower: from ${short(low)} to ${short(high)}.`,
        ),
    );
};
