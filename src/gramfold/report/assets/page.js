"use strict";
{
  const page = JSON.parse(document.getElementById("data").textContent);
  const main = document.querySelector("main");
  const state = { client: null, pinned: null, method: 0, drawn: 0 };
  const groups = page.groups.map((group) => ({ ...group, index: new Map(group.names.map((name, i) => [name, i])) }));
  const first = groups[0];
  const unit = page.error ? "RMSE" : "accuracy %";
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
      for (const [name, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (value >= scale) return `${+(value / scale).toPrecision(3)} ${name}`;
      return `${Math.round(value)} B`;
    },
    seconds: (value) => {
      if (value < 1) return `${+(1000 * value).toPrecision(2)} ms`;
      if (value < 120) return `${+value.toPrecision(3)} s`;
      return value < 7200 ? `${+(value / 60).toPrecision(3)} min` : `${+(value / 3600).toPrecision(3)} h`;
    },
  };
  const shown = (value) => (value === null || value === undefined ? "\u2013" : page.error ? short(value) : value.toFixed(1));
  const gained = (value) => (value > 0 ? "+" : "") + shown(value);
  const axis = page.error ? "number" : "percent";

  // --- elements ---

  const SVG = "http://www.w3.org/2000/svg";
  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
  const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const draw = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
  const px = (value) => Math.round(10 * value) / 10;
  const line = (x1, y1, x2, y2, css) => draw("line", { x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2), class: css });
  const text = (x, y, words, anchor = "start", css = null) => draw("text", { x: px(x), y: px(y), "text-anchor": anchor, class: css }, words);
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
  /** Many dots as one path: a thousand clients times thirty methods are thirty elements. */
  const dots = (places, radius, opacity) =>
    draw("path", { class: "dots", "stroke-width": 2 * radius, "stroke-opacity": opacity, d: places.map(([x, y]) => `M${px(x)},${px(y)}h0`).join("") });
  const density = (n) => (n > 400 ? 0.25 : n > 120 ? 0.4 : 0.6);

  // --- scales ---

  function steps(low, high, most) {
    const rough = (high - low) / Math.max(most, 1) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * 0.999);
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
  function scale(values, from, to, { log = false, room = 0.04, low = null, high = null } = {}) {
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
    const start = none ? from + Math.sign(to - from) * 22 : from;
    const at = (value) => (log && value <= 0 ? from + Math.sign(to - from) * 4 : start + ((place(value) - a) / (b - a || 1)) * (to - start));
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
    for (const mark of y.marks(6)) area.put(line(left, y(mark), area.width - right, y(mark), "grid"), text(left - 6, y(mark) + 4, forms[spec.yform](mark), "end"));
    const most = Math.floor((area.width - left - right) / 62);
    const every = spec.words ? Math.ceil(spec.words.length / most) : 1;
    for (const mark of spec.words ? spec.words.keys() : x.marks(most)) {
      if (mark % every && spec.words) continue;
      const words = spec.words ? cut(spec.words[mark], 10) : forms[spec.xform](mark);
      area.put(line(x(mark), height - bottom, x(mark), height - bottom + 4, "zero"), text(x(mark), height - bottom + 17, words, "middle"));
    }
    area.put(line(left, height - bottom, area.width - right, height - bottom, "zero"));
    area.put(text(left - 40, 12, spec.ylabel), text(area.width - right, height - 6, spec.xlabel, "end"));
    return { ...area, x, y, left, right: area.width - right, top, bottom: height - bottom };
  }

  // --- one client in all figures ---

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
    });
    plot.svg.addEventListener("pointerleave", (event) => {
      say(event, "");
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
      history.replaceState(null, "", name === null ? location.pathname + location.search : `#client=${encodeURIComponent(name)}`);
    } catch { /* a page without an address of its own */ }
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
      parts.push(...group.methods.map((method) => html("span", {}, `${method.name} ${shown(method.values[i])}`)));
    }
    who.replaceChildren(...parts);
  }
  const ring = (x, y, r = 5) => draw("circle", { cx: px(x), cy: px(y), r });
  function flag(area, x, y, words) {
    const end = x > area.width * 0.6;
    return text(x + (end ? -9 : 9), y < 16 ? y + 14 : y - 7, cut(words, 24), end ? "end" : "start");
  }
  const ranked = (values) => values.map((_, i) => i).filter((i) => values[i] !== null).sort((a, b) => values[a] - values[b]);
  const label = (group, i) => `client ${group.names[i]}`;

  // --- figures in which a client is a mark ---

  const kinds = {};
  kinds.strips = (spec, box) => {
    const group = groups[spec.group];
    const { methods } = group;
    const narrow = box.clientWidth < 560;
    const longest = Math.max(...methods.map((method) => method.name.length));
    const left = narrow ? 8 : Math.min(20 + 7.2 * longest, 210);
    const row = narrow ? 50 : methods.length > 12 ? 30 : 46;
    const height = 12 + row * methods.length + 34;
    const area = sheet(box, height, `${unit} of every client's final model, a row for each method`);
    const all = methods.flatMap((method) => method.values);
    const x = scale(all, left + 6, area.width - 54, page.error ? { low: 0 } : { high: 100, room: 0.02 });
    for (const mark of x.marks(Math.floor((area.width - left - 54) / 70))) {
      area.put(line(x(mark), 6, x(mark), height - 28, "grid"), text(x(mark), height - 10, forms[axis](mark), "middle"));
    }
    const points = [];
    const shake = (i) => (((i * 0.61803) % 1) - 0.5) * Math.min(row * 0.52, 24);
    methods.forEach((method, m) => {
      const middle = 10 + row * (m + 0.5) + (narrow ? 8 : 0);
      const mine = method.values.map((value, i) => ({ i, m, x: x(value), y: middle + shake(i), value })).filter((point) => point.value !== null);
      points.push(...mine);
      area.put(named(narrow ? left : left - 8, narrow ? middle - 17 : middle + 4, method.name, narrow ? 40 : 28, narrow ? "start" : "end", "name"));
      area.put(dots(mine.map((point) => [point.x, point.y]), mine.length > 300 ? 2.4 : 3.2, density(mine.length)));
      if (method.mean === null) return;
      const reach = Math.min(row * 0.36, 16);
      area.put(line(x(method.mean), middle - reach, x(method.mean), middle + reach, "mean"));
      area.put(text(area.width - 46, middle + 4, shown(method.mean), "start", "value"));
    });
    follow(box, {
      ...area, group, points, order: ranked(methods[Math.min(state.method, methods.length - 1)].values),
      says: (point) => `${methods[point.m].name} ${shown(point.value)}`,
      mark: (i) => {
        const mine = points.filter((point) => point.i === i);
        if (!mine.length) return [];
        return [draw("polyline", { points: mine.map((point) => `${px(point.x)},${px(point.y)}`).join(" ") }),
          ...mine.map((point) => ring(point.x, point.y)), flag(area, mine[0].x, mine[0].y, label(group, i))];
      },
    });
  };

  kinds.sorted = (spec, box) => {
    const group = groups[spec.group];
    const series = group.methods.map((method) => {
      const order = ranked(method.values);
      if (page.error) order.reverse();
      return { name: method.name, points: order.map((i, k) => [(100 * (k + 0.5)) / order.length, method.values[i], i]) };
    });
    const area = frame(box, {
      xs: [0, 100], ys: series.flatMap((one) => one.points.map((point) => point[1])), x: { low: 0, high: 100 }, y: page.error ? {} : { high: 100 },
      xform: "percent", yform: axis, xlabel: "clients, worst first", ylabel: unit, label: "sorted figures of all clients, a line for each method",
    });
    const points = [];
    series.forEach((one, m) => {
      const places = one.points.map(([at, value, i]) => ({ i, m, value, x: area.x(at), y: area.y(value) }));
      points.push(...places);
      area.put(curve(one.name, m, places.map((place) => [place.x, place.y]), 0));
    });
    box.append(key(series.map((one) => one.name)));
    follow(box, {
      ...area, group, points, order: ranked(group.methods[Math.min(state.method, series.length - 1)].values),
      says: (point) => `${series[point.m].name} ${shown(point.value)}`,
      mark: (i) => points.filter((point) => point.i === i).map((point) => ring(point.x, point.y, 4)),
    });
  };

  const across = {
    train: { of: (group) => group.train, log: true, form: "number", name: "training samples" },
    skew: { of: (group) => group.skew, log: false, form: "number", name: "skew" },
    estimate: { of: (_, method) => method.chosen.leave_one_out_accuracy, log: false, form: "percent", name: "leave-one-out estimate" },
  };
  kinds.scatter = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    const { of, log, form, name } = across[spec.x];
    const xs = of(group, method);
    if (!xs) return void box.append(html("p", { class: "soft" }, `${method.name} makes no such estimate; choose another method above.`));
    const ys = method.values;
    const both = spec.x === "estimate" ? [...xs, ...ys] : null;
    const area = frame(box, {
      xs: both ?? xs, ys: both ?? ys, x: { log }, y: {}, xform: form, yform: axis, xlabel: name, ylabel: `${unit}, ${method.name}`,
      label: `${unit} of ${method.name} against ${name}, a dot for each client`,
    });
    if (both) {
      const known = both.filter((value) => value !== null);
      const [low, high] = [Math.min(...known), Math.max(...known)];
      area.put(line(area.x(low), area.y(low), area.x(high), area.y(high), "diagonal"));
    }
    cloud(box, area, group, xs, ys, (i) => `${method.name} ${shown(ys[i])}, ${name} ${forms[form](xs[i])}`);
  };
  function cloud(box, area, group, xs, ys, says, plain = false) {
    const points = xs.map((value, i) => ({ i, value, other: ys[i] })).filter(({ value, other }) => typeof value === "number" && typeof other === "number");
    for (const point of points) [point.x, point.y] = [area.x(point.value), area.y(point.other)];
    area.put(dots(points.map((point) => [point.x, point.y]), plain ? 2.6 : 3.2, density(points.length)));
    const places = new Map(points.map((point) => [point.i, point]));
    follow(box, {
      ...area, group, points, order: [...points].sort((a, b) => a.x - b.x).map((point) => point.i), says: (point) => says(point.i),
      mark: (i) => {
        const point = places.get(i);
        return point ? [ring(point.x, point.y), ...(plain ? [] : [flag(area, point.x, point.y, label(group, i))])] : [];
      },
    });
  }
  kinds.scatter.focused = true;

  kinds.gains = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    const base = spec.against === "alone" ? group.methods[group.alone].values : method.shared;
    const than = spec.against === "alone" ? group.methods[group.alone].name : "its shared model";
    if (!base) return void box.append(html("p", { class: "soft" }, `${method.name} has no shared model; choose another method above.`));
    const gain = method.values.map((value, i) => (value === null || base[i] === null ? null : +((page.error ? -1 : 1) * (value - base[i])).toPrecision(6)));
    const order = ranked(gain).reverse();
    const count = (test) => order.filter((i) => test(gain[i])).length;
    const mean = order.reduce((sum, i) => sum + gain[i], 0) / (order.length || 1);
    box.append(html("p", { class: "says" },
      `${method.name}: ${count((g) => g > 0)} gain, ${count((g) => g === 0)} same, ${count((g) => g < 0)} lose; mean ${gained(mean)}`));
    const area = frame(box, {
      xs: [0, order.length], ys: [0, ...order.map((i) => gain[i])], x: { low: 0, high: Math.max(order.length, 1) }, y: { room: 0.08 }, height: 230,
      xform: "number", yform: "number", xlabel: "clients, largest gain first", ylabel: page.error ? `gain in ${unit}` : "gain in points",
      label: `gain of ${method.name} over ${than}, a bar for each client`,
    });
    const wide = (area.right - area.left) / Math.max(order.length, 1);
    const zero = area.y(0);
    const bar = (i, k) => `M${px(area.left + k * wide + 0.08 * wide)},${px(zero)}V${px(area.y(gain[i]))}h${(0.84 * wide).toFixed(2)}V${px(zero)}z`;
    for (const [css, test] of [["up", (g) => g > 0], ["down", (g) => g < 0]]) {
      area.put(draw("path", { class: css, d: order.map((i, k) => (test(gain[i]) ? bar(i, k) : "")).join("") }));
    }
    area.put(line(area.left, zero, area.right, zero, "zero"));
    const points = order.map((i, k) => ({ i, x: area.left + (k + 0.5) * wide, y: area.y(gain[i]) }));
    columns(box, area, group, points, order, (i) => `${gained(gain[i])}: ${method.name} ${shown(method.values[i])}, ${than} ${shown(base[i])}`);
  };
  kinds.gains.focused = true;
  /** Clients side by side, each with a column of its own. */
  function columns(box, area, group, points, order, says) {
    const places = new Map(points.map((point) => [point.i, point]));
    follow(box, {
      ...area, group, points, order, flat: true, says: (point) => says(point.i),
      mark: (i) => {
        const point = places.get(i);
        if (!point) return [];
        return [line(point.x, area.top ?? 16, point.x, area.bottom ?? area.height - 20, null), ring(point.x, point.y, 4), flag(area, point.x, Math.max(point.y, 26), label(group, i))];
      },
    });
  }

  kinds.sizes = (spec, box) => {
    const group = groups[spec.group];
    const order = ranked(group.train).reverse();
    const area = frame(box, {
      xs: [0, order.length], ys: [0, ...group.train], x: { low: 0, high: Math.max(order.length, 1) }, y: { low: 0 }, height: 190, xform: "number", yform: "number",
      xlabel: "clients, largest first", ylabel: "training samples", label: "training samples of each client, largest first",
    });
    const wide = (area.right - area.left) / Math.max(order.length, 1);
    const bar = (i, k) => `M${px(area.left + k * wide + 0.08 * wide)},${area.bottom}V${px(area.y(group.train[i]))}h${(0.84 * wide).toFixed(2)}V${area.bottom}z`;
    area.put(draw("path", { class: "size", d: order.map(bar).join("") }));
    const points = order.map((i, k) => ({ i, x: area.left + (k + 0.5) * wide, y: area.y(group.train[i]) }));
    columns(box, area, group, points, order, () => "");
  };

  kinds.labels = (spec, box) => {
    const group = groups[spec.group];
    const { classes, counts, names } = group;
    const totals = counts.map((mine) => mine.reduce((sum, [, n]) => sum + n, 0) || 1);
    const major = counts.map((mine, i) => mine.reduce((best, [code, n]) => (n / totals[i] > best[1] ? [code, n / totals[i]] : best), [0, 0]));
    const order = names.map((_, i) => i).sort((a, b) => major[a][0] - major[b][0] || major[b][1] - major[a][1]);
    const tall = Math.max(3, Math.min(20, 360 / classes.length));
    const left = Math.min(16 + 7 * Math.max(...classes.map((name) => Math.min(name.length, 16))), 130);
    const area = sheet(box, classes.length * tall + 34, "share of each class in each client's training samples");
    const wide = (area.width - left - 10) / names.length;
    const gap = wide > 8 ? 1 : 0;
    area.put(draw("rect", { class: "empty", x: left, y: 8, width: px(wide * names.length), height: px(tall * classes.length) }));
    const levels = Array.from({ length: 10 }, () => []);
    order.forEach((i, k) => {
      for (const [code, n] of counts[i]) {
        const level = Math.max(0, Math.ceil(10 * (n / totals[i]) ** 0.6) - 1);
        levels[level].push(`M${px(left + k * wide)},${px(8 + code * tall)}h${(wide - gap).toFixed(2)}v${(tall - (tall > 8 ? 1 : 0)).toFixed(2)}h${(gap - wide).toFixed(2)}z`);
      }
    });
    levels.forEach((cells, level) => cells.length && area.put(draw("path", { class: "cell", "fill-opacity": (0.1 + 0.09 * level).toFixed(2), d: cells.join("") })));
    const stride = Math.ceil(13 / tall);
    classes.forEach((name, c) => c % stride || area.put(named(left - 6, 8 + (c + 0.5) * tall + 4, name, 16, "end")));
    const points = order.map((i, k) => ({ i, x: left + (k + 0.5) * wide, y: 8 }));
    const places = new Map(points.map((point) => [point.i, point]));
    const most = (i) => counts[i].slice().sort((a, b) => b[1] - a[1]).slice(0, 4).map(([code, n]) => `${classes[code]}: ${n}`).join(", ");
    follow(box, {
      ...area, group, points, order, flat: true, says: (point) => most(point.i),
      mark: (i) => {
        const { x } = places.get(i);
        return [draw("rect", { x: px(x - wide / 2 - 1), y: 7, width: px(Math.max(wide + 1, 3)), height: px(tall * classes.length + 2) }),
          text(Math.max(left, Math.min(x, area.width - 130)), area.height - 8, cut(label(group, i), 24))];
      },
    });
  };

  kinds.chosen = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    const varied = Object.entries(method.chosen).filter(([name]) => !name.startsWith("leave_one_out"));
    const different = (values) => new Set(values.filter((value) => value !== null)).size;
    const same = varied.filter(([, values]) => different(values) === 1);
    const apart = varied.filter(([, values]) => different(values) > 1);
    const fixed = same.map(([name, values]) => `${name} ${typeof values.find((v) => v !== null) === "number" ? short(values.find((v) => v !== null)) : values.find((v) => v !== null)}`);
    const words = varied.length ? (fixed.length ? `${method.name}, the same for all: ${fixed.join(", ")}` : method.name) : `${method.name} leaves nothing to its clients to choose; choose another method above.`;
    box.append(html("p", { class: "says" }, words));
    const panels = html("div", { class: "panels" });
    box.append(panels);
    for (const [name, values] of apart) {
      const panel = html("div", {}, html("b", {}, name));
      panels.append(panel);
      const numbers = values.filter((value) => typeof value === "number");
      if (numbers.length < values.filter((value) => value !== null).length) {
        const kinds = Map.groupBy(values, String);
        panel.append(html("p", { class: "soft" }, [...kinds].sort((a, b) => b[1].length - a[1].length).slice(0, 6).map(([kind, all]) => `${kind}: ${all.length} clients`).join(", ")));
        continue;
      }
      const positive = numbers.filter((value) => value > 0);
      const log = numbers.every((value) => value >= 0) && positive.length > 0 && Math.max(...positive) / Math.min(...positive) > 20;
      const area = frame(panel, {
        xs: group.train, ys: values, x: { log: true }, y: { log }, height: 170, left: 44, top: 10, bottom: 34, xform: "number", yform: "number", xlabel: "", ylabel: "",
        label: `${name} that clients of ${method.name} chose, against their training samples`,
      });
      cloud(panel, area, group, group.train, values, (i) => `${name} ${short(values[i])}`, true);
    }
  };
  kinds.chosen.focused = true;

  // --- figures in which a method is a mark ---

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
      made.append(draw("polyline", { points: kept.map(([x, y]) => `${px(x)},${px(y)}`).join(" "), "stroke-dasharray": dash(s) }));
    }
    if (marks) made.append(...places.slice(-marks).map(([x, y]) => shape(s, x, y)));
    return made;
  }
  function key(names) {
    const list = html("ul", { class: "key" });
    names.forEach((name, s) => {
      const sample = draw("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, draw("g", { class: `series c${s % 8}` }, draw("line", { x1: 0, x2: 26, y1: 6, y2: 6, "stroke-dasharray": dash(s) }), shape(s, 13, 6)));
      const item = html("li", { class: `c${s % 8}`, "data-method": name }, sample, name);
      item.addEventListener("pointerenter", () => emphasise(name));
      item.addEventListener("pointerleave", () => emphasise(null));
      list.append(item);
    });
    return list;
  }
  function emphasise(name) {
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
      xs: all.map(([x]) => place(x)), ys: all.map(([, y]) => y), x: { log: spec.log && !words }, y: { room: 0.06 }, height: 280,
      xform: spec.xform ?? "number", yform: spec.yform ?? "number", xlabel: spec.x, ylabel: spec.y, label: `${spec.y} against ${spec.x}`,
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
    area.svg.addEventListener("pointerleave", (event) => { say(event, ""); emphasise(null); });
  };
  /** Names beside the ends of lines, where they hide nothing. */
  function labels(area, series, points) {
    const taken = points.map(({ x, y }) => [x - 5, y - 5, x + 5, y + 5]);
    points.forEach((to, k) => {
      const from = points[k - 1];
      if (!from || from.s !== to.s) return;
      const parts = Math.min(Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 8), 60);
      for (let t = 1; t < parts; t++) taken.push([-1, -1, 1, 1].map((by, side) => by + (side % 2 ? from.y + ((to.y - from.y) * t) / parts : from.x + ((to.x - from.x) * t) / parts)));
    });
    series.forEach((one, s) => {
      const end = points.findLast((point) => point.s === s);
      if (!end) return;
      const wide = 7.2 * Math.min(one.name.length, 20);
      const tries = [[end.x + 8, end.y - 7], [end.x - 8 - wide, end.y - 7], [end.x - wide / 2, end.y - 20], [end.x - wide / 2, end.y + 6]];
      const free = tries.find(([x, y]) => x >= area.left && x + wide <= area.right + 8 && y > 14 && y + 14 < area.bottom
        && taken.every(([a, b, c, d]) => x > c || x + wide < a || y > d || y + 14 < b));
      if (!free) return;
      taken.push([free[0], free[1], free[0] + wide, free[1] + 14]);
      area.put(draw("g", { class: `series c${s % 8}`, "data-method": one.name }, text(free[0], free[1] + 11, cut(one.name, 20))));
    });
  }

  kinds.intervals = (spec, box) => {
    const rows = spec.rows.filter((row) => row.mean !== null);
    const narrow = box.clientWidth < 560;
    const left = narrow ? 8 : Math.min(20 + 7.2 * Math.max(...rows.map((row) => row.name.length), 1), 210);
    const row = narrow ? 46 : 34;
    const area = sheet(box, 12 + row * rows.length + 34, `mean ${unit} over seeds and its confidence interval, by method`);
    const x = scale(rows.flatMap((one) => [...one.values, one.low, one.high, one.mean]), left + 8, area.width - 56);
    for (const mark of x.marks(Math.floor((area.width - left - 56) / 70))) {
      area.put(line(x(mark), 6, x(mark), area.height - 28, "grid"), text(x(mark), area.height - 10, forms[axis](mark), "middle"));
    }
    rows.forEach((one, k) => {
      const y = 10 + row * (k + 0.5) + (narrow ? 8 : 0);
      area.put(named(narrow ? left : left - 8, narrow ? y - 15 : y + 4, one.name, narrow ? 40 : 28, narrow ? "start" : "end", "name"));
      if (one.low !== null) area.put(line(x(one.low), y, x(one.high), y, "interval"));
      area.put(dots(one.values.filter((value) => value !== null).map((value) => [x(value), y]), 3.6, 0.6), line(x(one.mean), y - 9, x(one.mean), y + 9, "mean"));
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
        const made = draw("rect", { class: `filled c${p % 8}`, x: px(x(start)), y, width: Math.max(px(x(start + part) - x(start) - 0.5), 0), height: 17 });
        made.append(draw("title", {}, `${one.name}, ${spec.parts[p]}: ${forms[spec.form](part)}`));
        area.put(made);
        start += part;
      });
      area.put(text(x(start) + 5, y + 13, forms[spec.form](totals[k]), "start", "value"));
    });
    const list = html("ul", { class: "key" });
    spec.parts.forEach((name, p) => list.append(html("li", {}, draw("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, draw("rect", { class: `filled c${p % 8}`, width: 26, height: 12 })), name)));
    box.append(list);
  };

  kinds.reliability = (spec, box) => {
    const panels = html("div", { class: "panels" });
    box.append(panels);
    for (const { name, bins, error } of spec.panels) {
      const panel = html("div", {}, html("b", {}, name), ` ECE ${error === null ? "\u2013" : error.toFixed(3)}`);
      panels.append(panel);
      const area = frame(panel, {
        xs: [0, 100], ys: [0, 100], x: { low: 0, high: 100 }, y: { low: 0, high: 100 }, height: 180, left: 42, top: 8, bottom: 34, right: 18,
        xform: "percent", yform: "percent", xlabel: "", ylabel: "", label: `reliability of ${name}: the part that was right against confidence`,
      });
      area.put(line(area.x(0), area.y(0), area.x(100), area.y(100), "diagonal"));
      const most = Math.max(...bins.map(([n]) => n), 1);
      area.put(draw("g", { class: "series c0" }, draw("polyline", { points: bins.map(([, sure, right]) => `${px(area.x(sure))},${px(area.y(right))}`).join(" ") })));
      for (const [n, sure, right] of bins) {
        const dot = dots([[area.x(sure), area.y(right)]], 2 + 5 * Math.sqrt(n / most), 0.85);
        dot.append(draw("title", {}, `${n} samples, confidence ${sure} %, right ${right} %`));
        area.put(dot);
      }
    }
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
    across.forEach((name, c) => area.put(named(left + (c + 0.5) * wide, 14, String(name), Math.max(Math.floor(wide / 7), 3), "middle", "name")));
    rows.forEach((name, r) => {
      const y = 22 + tall * r;
      area.put(named(left - 6, y + 19, String(name), 18, "end", "name"));
      across.forEach((column, c) => {
        const value = values[r][c];
        const level = value === null ? 0 : high > low ? (value - low) / (high - low) : 0.5;
        const cell = draw("rect", { class: value === null ? "empty" : "cell", x: px(left + c * wide), y, width: px(wide - 2), height: tall - 2, "fill-opacity": value === null ? null : (0.08 + 0.84 * level).toFixed(2) });
        cell.append(draw("title", {}, `${spec.y} ${name}, ${spec.x} ${column}: ${value === null ? "not measured" : short(value)}`));
        area.put(cell);
        const words = value === null ? "\u2013" : known.every((one) => Math.abs(one) >= 10 && Math.abs(one) < 1000) ? value.toFixed(1) : short(value);
        if (wide >= 6.6 * words.length + 3) area.put(text(left + (c + 0.5) * wide - 1, y + 18, words, "middle", level > 0.55 ? "name on-dark" : "name"));
      });
    });
    box.append(html("p", { class: "says soft" }, `Rows: ${spec.y}; columns: ${spec.x}. The fainter, the lower: from ${short(low)} to ${short(high)}.`));
  };

  // --- tables ---

  const units = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, ms: 1e-3, s: 1, min: 60, h: 3600 };
  /** What a cell is worth when rows are sorted; words are worth themselves. */
  function worth(words) {
    const found = [...words.replace(/[[<]/g, "").matchAll(/([-+\u2212]?\d[\d.]*(?:e[-+]?\d+)?)\s*(B|kB|MB|GB|ms|s|min|h)?(?![a-z])/gi)];
    if (!found.length || !/^[-+\u2212[<\d]/.test(words)) return words === "\u2013" ? -Infinity : words;
    const timed = found.filter(([, , named]) => named);
    if (timed.length) return timed.reduce((sum, [, number, named]) => sum + number * units[named], 0);
    return Number(found[0][1].replace("\u2212", "-"));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, c) => {
      const button = html("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const cell = (row) => worth(row.cells[c].firstChild?.textContent ?? "");
        const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
        body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * order(cell(a), cell(b))));
      });
    });
  }
  for (const details of document.querySelectorAll("details.all")) {
    details.addEventListener("toggle", () => {
      if (details.querySelector("table")) return;
      const group = groups[details.dataset.group];
      const head = html("tr", {}, ...["client", "train", "test", ...(group.skew ? ["skew"] : []), ...group.methods.map((method) => method.name)].map((name) => html("th", { scope: "col" }, name)));
      const body = html("tbody");
      group.names.forEach((name, i) => {
        const cells = [name, group.train[i], group.test[i], ...(group.skew ? [group.skew[i]] : []), ...group.methods.map((method) => shown(method.values[i]))];
        const row = html("tr", { "data-client": name, class: name === state.pinned ? "on" : null }, ...cells.map((cell) => html("td", {}, String(cell))));
        row.addEventListener("click", () => pin(name === state.pinned ? null : name));
        body.append(row);
      });
      details.append(html("div", { class: "scroll" }, html("table", {}, html("thead", {}, head), body)));
    });
  }

  // --- the bar above ---

  function theme() {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const button = html("button", { type: "button", class: "theme", id: "theme", "aria-pressed": dark }, dark ? "Light" : "Dark");
    button.addEventListener("click", () => {
      const next = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      button.setAttribute("aria-pressed", next === "dark");
      button.textContent = next === "dark" ? "Light" : "Dark";
      try { localStorage.setItem("gramfold-theme", next); } catch { /* nowhere to remember it */ }
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
      const list = html("datalist", { id: "clients" }, ...[...new Set(groups.flatMap((group) => group.names))].map((name) => html("option", { value: name })));
      const field = html("input", { id: "client", type: "search", list: "clients", placeholder: "client", autocomplete: "off", "aria-label": "highlight a client" });
      field.addEventListener("input", () => pin(find(field.value.trim())));
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || find(field.value.trim())) return;
        const near = groups.flatMap((group) => group.names).find((name) => name.toLowerCase().includes(field.value.trim().toLowerCase()));
        if (near !== undefined) { field.value = near; pin(near); }
      });
      tools.append(html("label", {}, html("span", {}, "Highlight"), field), list);
      if (groups.length === 1) {
        const select = html("select", { id: "method", "aria-label": "method in figures of one method" }, ...first.methods.map((method, m) => html("option", { value: m }, method.name)));
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

  // --- drawing ---

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

  try { const kept = localStorage.getItem("gramfold-theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* nothing was kept */ }
  if (first) {
    const better = (a, b) => (page.error ? a < b : a > b);
    first.methods.forEach((method, m) => {
      const best = first.methods[state.method];
      if (m !== first.alone && method.mean !== null && (state.method === first.alone || best.mean === null || better(method.mean, best.mean))) state.method = m;
    });
  }
  bar();
  drawAll();
  state.drawn = innerWidth;
  let waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === state.drawn) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.drawn = innerWidth; drawAll(); }, 120);
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape") { pin(null); say(event, ""); } });
  const asked = /^#client=(.*)$/.exec(location.hash);
  if (asked) pin(find(decodeURIComponent(asked[1])));
}
