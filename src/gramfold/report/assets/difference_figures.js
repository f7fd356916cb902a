// Figures of how clients differ: who is with whom, and what each gained by joining.

/** A group's colour; of more than there are, the last. */
const tint = (g) => `c${Math.min(g, 7)}`;
const missing = (box, words) => void box.append(html("p", { class: "soft" }, words));

/** The groups from left to right, so that branches of the tree do not cross; a tree that is not there is the order they have. */
function leaves(tree, count) {
    const members = new Map(Array.from({ length: count }, (_, g) => [g, [g]]));
    tree.forEach(([a, b], k) => {
        members.set(count + k, [...members.get(a), ...members.get(b)]);
        members.delete(a);
        members.delete(b);
    });
    return [...members.values()].flat();
}

/** Ward's tree in little: every merge a bracket, as high as the two are apart. */
function branches(area, tree, at, base, top) {
    const tallest = Math.max(...tree.map(([, , height]) => height), 1e-9);
    const y = (height) => base - (base - top) * (height / tallest);
    const nodes = at.map((x) => ({ x, y: base }));
    for (const [a, b, height] of tree) {
        const [one, two] = [nodes[a], nodes[b]];
        const level = y(height);
        const points = [
            [one.x, one.y],
            [one.x, level],
            [two.x, level],
            [two.x, two.y],
        ];
        area.put(draw("polyline", { class: "branch", points: points.map(([x, v]) => `${px(x)},${px(v)}`).join(" ") }));
        area.put(text(Math.min(one.x, two.x) + 5, level + 14, short(height)));
        nodes.push({ x: (one.x + two.x) / 2, y: level });
    }
}

kinds.together = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    if (!method.groups) return missing(box, `${method.name} made no groups; choose another method above.`);
    const { names, tree, why, nats } = method.groups;
    const placed = spread(method.chosen.group, group) ?? [];
    const gains = spread(method.chosen.gained_by_joining, group) ?? group.names.map(() => null);
    const alone = names.length;
    const members = Array.from({ length: alone + 1 }, () => []);
    group.names.forEach((_, i) => {
        const g = names.indexOf(placed[i]);
        members[g >= 0 ? g : Number.isInteger(placed[i]) && placed[i] < alone ? placed[i] : alone].push(i);
    });
    const order = [...leaves(tree, alone), ...(members[alone].length ? [alone] : [])];
    const told = nats === null || nats === undefined ? "" : `; left-out clients are likelier by ${short(nats)} nats than in one`;
    box.append(html("p", { class: "says" }, `${method.name}: ${alone} groups${told}`));
    const crown = tree.length ? 96 : 10;
    const [left, bottom] = [48, why.some(Boolean) ? 76 : 56];
    const area = sheet(box, crown + 190 + bottom, `groups of clients that ${method.name} found, and what each client gained`);
    const [from, to] = [left + 6, area.width - 12];
    const y = scale([0, ...gains], area.height - bottom, crown + 12, { room: 0.08 });
    for (const mark of y.marks(5)) area.put(line(left, y(mark), to, y(mark), "grid"), text(left - 6, y(mark) + 4, short(mark), "end"));
    area.put(line(left, y(0), to, y(0), "zero"), text(left - 40, crown + 2, "nats a sample"));
    const least = Math.min(56, (to - from) / order.length);
    const free = to - from - least * order.length;
    const total = order.reduce((sum, g) => sum + members[g].length, 0) || 1;
    const at = Array(alone).fill(0);
    const points = [];
    let x = from;
    for (const g of order) {
        const wide = least + (free * members[g].length) / total;
        const mine = members[g].slice().sort((a, b) => (gains[b] ?? 0) - (gains[a] ?? 0));
        const step = (wide - 14) / Math.max(mine.length, 1);
        const places = mine.map((i, k) => ({ i, g, x: x + 7 + (k + 0.5) * step, y: y(gains[i] ?? 0) }));
        points.push(...places);
        if (g < alone) at[g] = x + wide / 2;
        const css = g < alone ? tint(g) : "c7";
        const band = draw("rect", { x: px(x + 2), y: crown, width: px(wide - 4), height: area.height - bottom - crown + 4 });
        const marks = dots(
            places.map((place) => [place.x, place.y]),
            4,
            0.8,
        );
        area.put(draw("g", { class: `group ${css}` }, band, marks));
        const letters = Math.max(3, Math.floor(wide / 7));
        const under = area.height - bottom + 20;
        area.put(named(x + wide / 2, under, g < alone ? names[g] : "in no group", letters, "middle", "name"));
        area.put(named(x + wide / 2, under + 16, `${mine.length} client${mine.length === 1 ? "" : "s"}`, letters, "middle"));
        if (g < alone && why[g]) area.put(named(x + wide / 2, under + 34, why[g], letters, "middle"));
        x += wide;
    }
    branches(area, tree, at, crown - 2, 24);
    if (tree.length) area.put(text(left - 40, 12, "apart, in standard deviations of a sample"));
    const of = byClient(points);
    follow(box, {
        ...area,
        group,
        points,
        order: points.map((point) => point.i),
        says: ({ i, g }) => {
            const where = g < alone ? names[g] : "in no group";
            const reason = g < alone && why[g] ? `\n${why[g]} (standard deviations)` : "";
            return `${where}${gains[i] === null ? "" : `, gained ${short(gains[i])} nats a sample`}${reason}`;
        },
        mark: (i) => of(i).flatMap((point) => [ring(point.x, point.y), flag(area, point.x, point.y, label(group, i))]),
    });
};
kinds.together.focused = true;

kinds.joined = (spec, box) => {
    const group = groups[spec.group];
    const method = group.methods[state.method];
    const known = spread(method.chosen.gained_by_joining, group);
    if (!known) return missing(box, `${method.name} does not say; choose another method above.`);
    const order = ranked(known).reverse();
    const lost = order.filter((i) => known[i] < 0).length;
    const mean = order.reduce((sum, i) => sum + known[i], 0) / (order.length || 1);
    const words = `${method.name}: ${short(mean)} nats a sample in the mean; ${lost ? `${lost} lose` : "nobody loses"}`;
    box.append(html("p", { class: "says" }, words));
    columns(box, group, order, known, {
        y: { room: 0.08 },
        height: 210,
        xlabel: "clients, largest gain first",
        ylabel: "nats a sample",
        label: `what each client gained by joining with ${method.name}, by left-out samples`,
        css: (i) => (known[i] < 0 ? "down" : "up"),
        says: (i) => `gained ${short(known[i])} nats a sample by joining`,
    });
};
kinds.joined.focused = true;
