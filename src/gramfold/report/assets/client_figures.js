// Figures in which a client is a mark.

const kinds = {};
/** Clients that all have room for their names. */
const FEW = 12;
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
    const x = scale(all, left + 6, area.width - 54, less ? ends : { ...ends, room: 0.02 });
    for (const mark of x.marks(Math.floor((area.width - left - 54) / 70))) {
        area.put(line(x(mark), 6, x(mark), height - 28, "grid"), text(x(mark), height - 10, forms[axis](mark), "middle"));
    }
    const points = [];
    const shake = (i) => (((i * 0.61803) % 1) - 0.5) * Math.min(row * 0.52, 24);
    methods.forEach((method, m) => {
        const middle = 10 + row * (m + 0.5) + (narrow ? 8 : 0);
        const mine = method.values
            .map((value, i) => ({ i, m, x: x(value), y: middle + shake(i), value }))
            .filter((point) => point.value !== null);
        points.push(...mine);
        area.put(
            named(
                narrow ? left : left - 8,
                narrow ? middle - 17 : middle + 4,
                method.name,
                narrow ? 40 : 28,
                narrow ? "start" : "end",
                "name",
            ),
        );
        area.put(
            dots(
                mine.map((point) => [point.x, point.y]),
                mine.length > 300 ? 2.4 : 3.2,
                density(mine.length),
            ),
        );
        if (method.mean === null) return;
        const reach = Math.min(row * 0.36, 16);
        area.put(line(x(method.mean), middle - reach, x(method.mean), middle + reach, "mean"));
        area.put(text(area.width - 46, middle + 4, shown(method.mean), "start", "value"));
    });
    const of = byClient(points);
    follow(box, {
        ...area,
        group,
        points,
        order: ranked(methods[Math.min(state.method, methods.length - 1)].values),
        says: (point) => `${methods[point.m].name} ${sure(methods[point.m], point.i)}`,
        mark: (i) => {
            const mine = of(i);
            if (!mine.length) return [];
            return [
                draw("polyline", { points: mine.map((point) => `${px(point.x)},${px(point.y)}`).join(" ") }),
                ...mine.map((point) => ring(point.x, point.y)),
                flag(area, mine[0].x, mine[0].y, label(group, i)),
            ];
        },
    });
};

kinds.sorted = (spec, box) => {
    const group = groups[spec.group];
    const series = group.methods.map((method) => {
        const order = ranked(method.values);
        if (less) order.reverse();
        return { name: method.name, points: order.map((i, k) => [(100 * (k + 0.5)) / order.length, method.values[i], i]) };
    });
    const area = frame(box, {
        xs: [0, 100],
        ys: series.flatMap((one) => one.points.map((point) => point[1])),
        x: { low: 0, high: 100 },
        y: less ? within : ends,
        xform: "percent",
        yform: axis,
        xlabel: "clients, worst first",
        ylabel: unit,
        label: "sorted figures of all clients, a line for each method",
    });
    const points = [];
    series.forEach((one, m) => {
        const places = one.points.map(([at, value, i]) => ({ i, m, value, x: area.x(at), y: area.y(value) }));
        points.push(...places);
        const made = curve(
            one.name,
            m,
            places.map((place) => [place.x, place.y]),
            0,
        );
        if (places.length) made.append(shape(m, places[0].x, places[0].y, 3.5));
        area.put(made);
    });
    box.append(key(series.map((one) => one.name)));
    const of = byClient(points);
    follow(box, {
        ...area,
        group,
        points,
        about: (point) => emphasise(series.length > 1 && point ? series[point.m].name : null),
        order: ranked(group.methods[Math.min(state.method, series.length - 1)].values),
        says: (point) => `${series[point.m].name} ${sure(group.methods[point.m], point.i)}`,
        mark: (i) => of(i).map((point) => ring(point.x, point.y, 4)),
    });
};

/** What all clients have in common is written once. */
const spread = (values, group) => (values === undefined || Array.isArray(values) ? values : group.names.map(() => values));
const across = {
    train: { of: (group) => group.train, log: true, form: "number", name: "training samples" },
    skew: { of: (group) => group.skew, log: false, form: "number", name: "skew" },
    estimate: {
        of: (group, method) => spread(method.chosen.leave_one_out_accuracy, group),
        log: false,
        form: "percent",
        name: "leave-one-out estimate",
    },
};
kinds.scatter = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    const { of, log, form, name } = across[spec.x];
    const xs = of(group, method);
    if (!xs)
        return void box.append(
            html("p", { class: "soft" }, `${method.name} makes no such estimate; choose another method above.`),
        );
    const ys = method.values;
    const both = spec.x === "estimate" ? [...xs, ...ys] : null;
    const area = frame(box, {
        xs: both ?? xs,
        ys: both ?? ys,
        x: { log, cap: form === "percent" ? 100 : null },
        y: within,
        xform: form,
        yform: axis,
        xlabel: name,
        ylabel: `${unit}, ${method.name}`,
        label: `${unit} of ${method.name} against ${name}, a dot for each client`,
    });
    if (both) {
        const known = both.filter((value) => value !== null);
        const [low, high] = [Math.min(...known), Math.max(...known)];
        area.put(line(area.x(low), area.y(low), area.x(high), area.y(high), "diagonal"));
    }
    cloud(box, area, group, xs, ys, (i) => `${method.name} ${sure(method, i)}, ${name} ${forms[form](xs[i])}`);
};
function cloud(box, area, group, xs, ys, says, plain = false) {
    const points = xs
        .map((value, i) => ({ i, value, other: ys[i] }))
        .filter(({ value, other }) => typeof value === "number" && typeof other === "number");
    for (const point of points) [point.x, point.y] = [area.x(point.value), area.y(point.other)];
    area.put(
        dots(
            points.map((point) => [point.x, point.y]),
            plain ? 2.6 : 3.2,
            density(points.length),
        ),
    );
    const places = new Map(points.map((point) => [point.i, point]));
    follow(box, {
        ...area,
        group,
        points,
        order: [...points].sort((a, b) => a.x - b.x).map((point) => point.i),
        says: (point) => says(point.i),
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
    if (!base)
        return void box.append(html("p", { class: "soft" }, `${method.name} has no shared model; choose another method above.`));
    const gain = method.values.map((value, i) =>
        value === null || base[i] === null ? null : +((less ? -1 : 1) * (value - base[i])).toPrecision(6),
    );
    const order = ranked(gain).reverse();
    const count = (test) => order.filter((i) => test(gain[i])).length;
    const mean = order.reduce((sum, i) => sum + gain[i], 0) / (order.length || 1);
    const [won, same, lost] = [(g) => g > 0, (g) => g === 0, (g) => g < 0].map(count);
    box.append(html("p", { class: "says" }, `${method.name}: ${won} gain, ${same} same, ${lost} lose; mean ${gained(mean)}`));
    columns(box, group, order, gain, {
        y: { room: 0.08 },
        height: 230,
        xlabel: "clients, largest gain first",
        ylabel: percent ? "gain in points" : `gain in ${unit}`,
        label: `gain of ${method.name} over ${than}, a bar for each client`,
        css: (i) => (gain[i] < 0 ? "down" : "up"),
        says: (i) => `${gained(gain[i])}: ${method.name} ${sure(method, i)}, ${than} ${shown(base[i])}`,
    });
};
kinds.gains.focused = true;

kinds.sizes = (spec, box) => {
    const group = groups[spec.group];
    columns(box, group, ranked(group.train).reverse(), group.train, {
        y: { low: 0 },
        height: 190,
        xlabel: "clients, largest first",
        ylabel: "training samples",
        label: "training samples of each client, largest first",
        css: () => "size",
        says: () => "",
    });
};
/** Clients side by side, each with a bar of its own; named, where they are few. */
function columns(box, group, order, heights, spec) {
    const n = Math.max(order.length, 1);
    const ys = [0, ...order.map((i) => heights[i])];
    const words = n > FEW ? null : order.map((i) => group.names[i]);
    const x = words ? { low: -0.5, high: n - 0.5 } : { low: 0, high: n };
    const area = frame(box, { xs: [0, n], ys, x, words, xform: "number", yform: "number", ...spec });
    const wide = (area.right - area.left) / n;
    const zero = area.y(0);
    const points = order.map((i, k) => ({ i, x: area.left + (k + 0.5) * wide, y: area.y(heights[i]) }));
    for (const css of new Set(order.map(spec.css))) {
        const mine = points.filter(({ i }) => spec.css(i) === css);
        const bars = mine.map(({ x, y }) => block(x - 0.42 * wide, Math.min(y, zero), 0.84 * wide, Math.abs(y - zero)));
        area.put(draw("path", { class: css, d: bars.join("") }));
    }
    area.put(line(area.left, zero, area.right, zero, "zero"));
    const of = byClient(points);
    follow(box, {
        ...area,
        group,
        points,
        order,
        flat: true,
        says: (point) => spec.says(point.i),
        mark: (i) =>
            of(i).flatMap(({ x, y }) => [
                line(x, area.top, x, area.bottom, null),
                ring(x, y, 4),
                flag(area, x, Math.max(y, 26), label(group, i)),
            ]),
    });
}

kinds.labels = (spec, box) => {
    const group = groups[spec.group];
    const { classes, counts, names } = group;
    const totals = counts.map((mine) => mine.reduce((sum, [, n]) => sum + n, 0) || 1);
    const major = counts.map((mine, i) =>
        mine.reduce((best, [code, n]) => (n / totals[i] > best[1] ? [code, n / totals[i]] : best), [0, 0]),
    );
    const order = names.map((_, i) => i).sort((a, b) => major[a][0] - major[b][0] || major[b][1] - major[a][1]);
    const tall = Math.max(3, Math.min(20, 360 / classes.length));
    const left = Math.min(16 + 7 * Math.max(...classes.map((name) => Math.min(name.length, 16))), 130);
    const area = sheet(box, classes.length * tall + (names.length > FEW ? 34 : 52), "share of each class in each client's training samples");
    const wide = (area.width - left - 10) / names.length;
    const gap = wide > 8 ? 1 : 0;
    area.put(draw("rect", { class: "empty", x: left, y: 8, width: px(wide * names.length), height: px(tall * classes.length) }));
    const levels = Array.from({ length: 10 }, () => []);
    order.forEach((i, k) => {
        for (const [code, n] of counts[i]) {
            const level = Math.max(0, Math.ceil(10 * (n / totals[i]) ** 0.6) - 1);
            levels[level].push(block(left + k * wide, 8 + code * tall, wide - gap, tall - (tall > 8 ? 1 : 0)));
        }
    });
    levels.forEach(
        (cells, level) =>
            cells.length &&
            area.put(draw("path", { class: "cell", "fill-opacity": (0.1 + 0.09 * level).toFixed(2), d: cells.join("") })),
    );
    if (names.length <= FEW)
        order.forEach((i, k) => {
            const most = Math.max(3, Math.floor(wide / 8));
            area.put(named(left + (k + 0.5) * wide, 8 + tall * classes.length + 16, names[i], most, "middle"));
        });
    const stride = Math.ceil(13 / tall);
    classes.forEach((name, c) => c % stride || area.put(named(left - 6, 8 + (c + 0.5) * tall + 4, name, 16, "end")));
    const points = order.map((i, k) => ({ i, x: left + (k + 0.5) * wide, y: 8 }));
    const places = new Map(points.map((point) => [point.i, point]));
    const most = (i) =>
        counts[i]
            .slice()
            .sort((a, b) => b[1] - a[1])
            .slice(0, 4)
            .map(([code, n]) => `${classes[code]}: ${n}`)
            .join(", ");
    follow(box, {
        ...area,
        group,
        points,
        order,
        flat: true,
        says: (point) => most(point.i),
        mark: (i) => {
            const { x } = places.get(i);
            return [
                draw("rect", {
                    x: px(x - wide / 2 - 1),
                    y: 7,
                    width: px(Math.max(wide + 1, 3)),
                    height: px(tall * classes.length + 2),
                }),
                text(Math.max(left, Math.min(x, area.width - 130)), area.height - 8, cut(label(group, i), 24)),
            ];
        },
    });
};

kinds.chosen = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    const varied = Object.entries(method.chosen).filter(([name]) => !name.startsWith("leave_one_out"));
    const apart = varied.filter(([, values]) => Array.isArray(values));
    const fixed = varied
        .filter(([, value]) => !Array.isArray(value))
        .map(([name, value]) => `${name} ${typeof value === "number" ? short(value) : value}`);
    const words = varied.length
        ? fixed.length
            ? `${method.name}, the same for all: ${fixed.join(", ")}`
            : method.name
        : `${method.name} leaves nothing to its clients to choose; choose another method above.`;
    box.append(html("p", { class: "says" }, words));
    panels(
        box,
        apart,
        ([name]) => [html("b", {}, name)],
        (panel, [name, values]) => {
            const numbers = values.filter((value) => typeof value === "number");
            if (numbers.length < values.filter((value) => value !== null).length) {
                const kinds = Map.groupBy(values, String);
                panel.append(
                    html(
                        "p",
                        { class: "soft" },
                        [...kinds]
                            .sort((a, b) => b[1].length - a[1].length)
                            .slice(0, 6)
                            .map(([kind, all]) => `${kind}: ${all.length} clients`)
                            .join(", "),
                    ),
                );
                return;
            }
            const positive = numbers.filter((value) => value > 0);
            const log =
                numbers.every((value) => value >= 0) && positive.length > 0 && Math.max(...positive) / Math.min(...positive) > 20;
            const area = frame(panel, {
                xs: group.train,
                ys: values,
                x: { log: true },
                y: { log },
                height: 170,
                left: 44,
                top: 10,
                bottom: 34,
                xform: "number",
                yform: "number",
                xlabel: "",
                ylabel: "",
                label: `${name} that clients of ${method.name} chose, against their training samples`,
            });
            cloud(panel, area, group, group.train, values, (i) => `${name} ${short(values[i])}`, true);
        },
    );
};
kinds.chosen.focused = true;
