// What all figures are drawn with: the page's numbers, numbers for people, elements, scales and axes.

const page = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const state = { client: null, pinned: null, method: 0, emphasised: null, drawn: 0 };
const groups = page.groups.map((group) => ({
    ...group,
    index: new Map(group.names.map((name, i) => [name, i])),
    counts: group.counts?.map((mine) => mine.flatMap((n, k) => (k % 2 ? [[mine[k - 1], n]] : []))),
    methods: group.methods.map((method) => ({
        ...method,
        shared: typeof method.shared === "number" ? group.methods[method.shared].shared : method.shared,
    })),
}));
const first = groups[0];
const { unit, less, percent } = page.measure;
/** Where the axis of the measure ends, and what no axis of it goes beyond. */
const ends = less ? { low: 0 } : page.measure.most === null ? {} : { high: page.measure.most };
const within = { floor: page.measure.least, cap: page.measure.most };
let plots = [];

// --- numbers for people ---

const short = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
    return String(+value.toPrecision(3));
};
const forms = {
    number: short,
    percent: (value) => `${short(value)} %`,
    bytes: (value) => {
        for (const [name, scale] of [
            ["GB", 1e9],
            ["MB", 1e6],
            ["kB", 1e3],
        ])
            if (value >= scale) return `${+(value / scale).toPrecision(3)} ${name}`;
        return `${Math.round(value)} B`;
    },
    seconds: (value) => {
        if (value < 1) return `${+(1000 * value).toPrecision(2)} ms`;
        if (value < 120) return `${+value.toPrecision(3)} s`;
        return value < 7200 ? `${+(value / 60).toPrecision(3)} min` : `${+(value / 3600).toPrecision(3)} h`;
    },
};
const shown = (value) =>
    value === null || value === undefined ? "\u2013" : percent ? value.toFixed(1) : ends.high === 1 ? value.toFixed(3) : short(value);
/** A client's figure with its confidence interval. */
const sure = (method, i) =>
    shown(method.values[i]) + (method.ends?.[i] ? ` [${shown(method.ends[i][0])}, ${shown(method.ends[i][1])}]` : "");
const gained = (value) => (value > 0 ? "+" : "") + shown(value);
const axis = percent ? "percent" : "number";

// --- elements ---

const SVG = "http://www.w3.org/2000/svg";
function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes))
        if (value !== null && value !== undefined) element.setAttribute(key, value);
    element.append(...children);
    return element;
}
const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const px = (value) => Math.round(10 * value) / 10;
/** A rectangle as part of a path. */
const block = (x, y, wide, tall) => `M${px(x)},${px(y)}h${wide.toFixed(2)}v${tall.toFixed(2)}h${(-wide).toFixed(2)}z`;
const line = (x1, y1, x2, y2, css) => draw("line", { x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2), class: css });
const text = (x, y, words, anchor = "start", css = null) =>
    draw("text", { x: px(x), y: px(y), "text-anchor": anchor, class: css }, words);
const cut = (words, most) => (words.length > most ? words.slice(0, most - 1) + "\u2026" : words);
/** A name that leaves itself whole to whoever points at it. */
function named(x, y, words, most, anchor, css) {
    const made = text(x, y, cut(words, most), anchor, css);
    if (words.length > most) made.append(draw("title", {}, words));
    return made;
}
function sheet(box, height, label) {
    const width = Math.max(Math.floor(box.clientWidth), 120);
    const made = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    box.append(made);
    return { svg: made, width, height, put: (...parts) => made.append(...parts) };
}
/** Small figures in a grid: all of them are there before the first is drawn, since their number decides their width. */
function panels(box, list, about, fill) {
    const made = list.map((one) => html("div", {}, ...about(one)));
    box.append(html("div", { class: "panels" }, ...made));
    made.forEach((panel, k) => fill(panel, list[k]));
}
/** Many dots as a few paths, so that thirty thousand are drawn at once; several, so that crowds are darker than single ones. */
function dots(places, radius, opacity) {
    const layers = Array.from({ length: Math.min(places.length, 6) }, () => []);
    places.forEach(([x, y], k) => layers[k % layers.length].push(`M${px(x)},${px(y)}h0`));
    const made = layers.map((layer) =>
        draw("path", { "stroke-width": 2 * radius, "stroke-opacity": opacity, d: layer.join("") }),
    );
    return draw("g", { class: "dots" }, ...made);
}
/** Points by the client that they belong to. */
function byClient(points) {
    const found = new Map();
    for (const point of points) found.has(point.i) ? found.get(point.i).push(point) : found.set(point.i, [point]);
    return (i) => found.get(i) ?? [];
}
const density = (n) => (n > 400 ? 0.28 : n > 120 ? 0.5 : 0.75);

// --- scales ---

function steps(low, high, most) {
    const rough = (high - low) / Math.max(most, 1) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * 0.75);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(+(k * step).toPrecision(12));
    return found;
}
function decades(low, high, most) {
    const found = [];
    const from = Math.floor(Math.log10(low));
    const to = Math.ceil(Math.log10(high));
    const marks = Math.log10(high / low) < 1.8 ? [1, 2, 5] : [1];
    for (let k = from; k <= to; k++) for (const mark of marks) found.push(mark * 10 ** k);
    const inside = found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    const stride = Math.ceil(inside.length / Math.max(most, 1));
    return inside.length ? inside.filter((_, i) => i % stride === 0) : [low];
}
/** From values to pixels. On a logarithmic scale what is not positive lies below all that is, under its own mark. */
function scale(values, from, to, { log = false, room = 0.04, low = null, high = null, floor = null, cap = null } = {}) {
    const known = values.filter((value) => value !== null && Number.isFinite(value) && (!log || value > 0));
    const least = low ?? (known.length ? known.reduce((a, b) => Math.min(a, b)) : log ? 1 : 0);
    const most = high ?? (known.length ? known.reduce((a, b) => Math.max(a, b)) : 1);
    const none = log && values.some((value) => value !== null && value <= 0);
    const place = log ? Math.log10 : (value) => value;
    let a = place(least);
    let b = place(most);
    const margin = b > a ? room * (b - a) : log ? 0.3 : Math.max(Math.abs(a) * 0.1, 0.5);
    a -= low === null ? margin : 0;
    b += high === null ? margin : 0;
    if (floor !== null) a = Math.max(a, floor);
    if (cap !== null) b = Math.min(b, cap);
    const start = none ? from + Math.sign(to - from) * 22 : from;
    const at = (value) =>
        log && value <= 0 ? from + Math.sign(to - from) * 4 : start + ((place(value) - a) / (b - a || 1)) * (to - start);
    const counted = known.every(Number.isInteger);
    at.marks = (count) => {
        const inside = log ? decades(10 ** a, 10 ** b, count) : steps(a, b, count);
        return [...(none ? [0] : []), ...(counted ? inside.filter(Number.isInteger) : inside)];
    };
    return at;
}
function frame(box, spec) {
    const { height = 260, left = 48, right = 22, top = 24, bottom = 40, label } = spec;
    const area = sheet(box, height, label);
    const x = scale(spec.xs, left, area.width - right, spec.x);
    const y = scale(spec.ys, height - bottom, top, spec.y);
    for (const mark of y.marks(6))
        area.put(
            line(left, y(mark), area.width - right, y(mark), "grid"),
            text(left - 6, y(mark) + 4, forms[spec.yform](mark), "end"),
        );
    const most = Math.floor((area.width - left - right) / 62);
    const letters = spec.words ? Math.max(10, Math.floor((area.width - left - right) / spec.words.length / 8)) : 0;
    const every = spec.words ? Math.ceil(spec.words.length / most) : 1;
    for (const mark of spec.words ? spec.words.keys() : x.marks(most)) {
        if (mark % every && spec.words) continue;
        const words = spec.words ? cut(spec.words[mark], letters) : forms[spec.xform](mark);
        area.put(
            line(x(mark), height - bottom, x(mark), height - bottom + 4, "zero"),
            text(x(mark), height - bottom + 17, words, "middle"),
        );
    }
    area.put(line(left, height - bottom, area.width - right, height - bottom, "zero"));
    area.put(text(left - 40, 12, spec.ylabel), text(area.width - right, height - 6, spec.xlabel, "end"));
    return { ...area, x, y, left, right: area.width - right, top, bottom: height - bottom };
}
