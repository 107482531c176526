"use strict";
// The page of a run: each section is drawn from the data in it.

const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const none = (place, why) => place.append(element("p", {class: "none"}, why));

function figures() {
  for (const [name, value, remark] of data.figures)
    at("figures").append(element("div", {class: "figure"}, element("span", {}, name), element("b", {}, value), element("small", {}, remark)));
}

const NAMED_LAYERS = 3;

function costs() {
  const named = data.costs.reduce((sum, cost) => sum + cost.share, 0);
  at("spent").textContent = data.costs.length
    ? `What the ${whole(data.cycles)} cycles are spent on, the largest first: ${digits(100 * named)} % of them.${data.other_costs ? ` Others take ${whole(data.other_costs)}.` : ""} A saving is of the whole run; one that is not marked “at most” is predicted by the cycle model for that one change, and savings do not add up.`
    : "No cycles were counted.";
  at("costs").append(...data.costs.map(cost => {
    const where = element("small", {}, cost.layers.length > 1 ? `in ${cost.layers.length} layers, most in ` : "in ");
    cost.layers.slice(0, NAMED_LAYERS).forEach(([index, cycles], place) => where.append(place ? ", " : "",
      button(short(data.layers[index].name, innerWidth < 1000 ? 24 : 40), () => { choose(data.layers[index]); at("plan").scrollIntoView({block: "center"}); }, {title: `${data.layers[index].name}: ${whole(cycles)} cycles`}), ` (${whole(cycles)})`));
    const change = element("div", {}, cost.change);
    if (cost.option) change.append(element("small", {}, element("code", {}, cost.option)));
    const saved = cost.saved === null ? "–" : cost.again ? "as above" : `${cost.most ? "at most " : ""}${whole(cost.saved)}`;
    return element("li", {style: `border-left-color:${paint(cost.unit, 0)}`},
      element("div", {}, element("b", {}, whole(cost.cycles)), element("small", {}, `cycles, ${digits(100 * cost.share)} %`)),
      element("div", {}, cost.cause, where), change,
      element("div", {}, element("small", {}, "saves"), element("b", {}, saved), element("small", {}, cost.saved === null || cost.again ? "" : `cycles, ${digits(100 * cost.saved / data.cycles)} %`)));
  }));
}

let chosen = null;

function choose(layer) {
  chosen = layer;
  plan(layer);
  for (const row of document.querySelectorAll("#network .layer")) row.setAttribute("aria-current", String(+row.dataset.index === layer.index));
}

function plan(layer) {
  const list = element("dl"), add = (name, value) => list.append(element("dt", {}, name), element("dd", {}, value));
  add("place", layer.place + (layer.operator ? `: ${layer.operator}` : ""));
  if (layer.reason) add("because", layer.reason);
  add("beside ONNX Runtime", layer.exact);
  add("cycles", `${whole(layer.cycles)}, ${digits(100 * layer.cycles / data.cycles)} % of all`);
  add("MAC", whole(layer.macs));
  add("memory", `${bytes(layer.read)} read, ${bytes(layer.written)} written`);
  add("energy", `${digits(layer.energy)} µJ, absolute ${digits(layer.low)} … ${digits(layer.high)}`);
  for (const [side, texts] of Object.entries(layer.tensors)) if (texts.length) add(side, texts.join("\n"));
  for (const [name, value] of Object.entries(layer.plan ? layer.plan.attributes : {})) add(name, value);
  const how = layer.plan;
  if (how && layer.place !== "host core") {
    add("algorithm", how.algorithm + (how.paired_rows ? ", paired rows" : ""));
    if (how.fused.length) add("with", how.fused.join("; "));
    add("tiles", `${how.tile.count} of ${how.tile.rows} rows × ${how.tile.columns} columns`);
    add("weights", `${how.block.count} blocks of ${how.block.channels} channels` + (how.block.kernel_parts > 1 ? `, kernel in ${how.block.kernel_parts} parts` : ""));
    add("loops", how.loop_order);
    add("bound by", how.bound);
    add("planned", `${whole(how.predicted_cycles)} cycles: array ${whole(how.compute_cycles)}, bus ${whole(how.memory_cycles)}, post ${whole(how.post_cycles)}`);
    add("roofline", `${whole(how.roofline_cycles)} cycles`);
    add("on chip", [how.on_chip.input ? "input" : "", how.on_chip.output ? "output" : ""].filter(Boolean).join(" and ") || "neither input nor output");
  }
  if (layer.nodes.length) add("ONNX nodes", layer.nodes.join(", "));
  at("plan").replaceChildren(element("b", {}, layer.name), list);
}

// Results that a later row takes, but for those of the row before, as arcs beside the rows.
function arcs(places, height, width) {
  const all = drawing(width, height, "Which layer's result which other layer takes"), drawn = new Set(), y = row => row * 26 + 13;
  for (const [from, to] of data.edges) {
    const start = from < 0 ? -0.4 : places.get(from), end = places.get(to);
    if (start === undefined || end === undefined || end <= start || drawn.has(`${start} ${end}`)) continue;
    drawn.add(`${start} ${end}`);
    const near = end - start === 1, out = near ? width - 4 : Math.max(2, width - 10 - 14 * Math.sqrt(end - start));
    all.append(shape("path", {d: `M ${width} ${y(start)} C ${out} ${y(start)}, ${out} ${y(end)}, ${width} ${y(end)}`, fill: "none", stroke: variable(near ? "--line" : "--soft"), "stroke-width": 1.3}));
  }
  return all;
}

function network(rows) {
  const most = Math.max(...rows.map(row => row.cycles), 1), places = new Map(), made = [];
  const narrow = at("network").clientWidth < 600, compared = data.layers.some(layer => !layer.exact.startsWith("not compared"));
  let block = null;
  for (const row of rows) {
    const folded = row.members.length > 1;
    if (!folded && row.block !== block && view.several.includes(row.block)) made.push(button(`▾ ${row.block}`, () => view.fold(row.block), {class: "block", "aria-expanded": "true"}));
    block = row.block;
    row.members.forEach(layer => places.set(layer.index, made.length));
    const onChip = row.plan && row.plan.on_chip && row.plan.on_chip.input ? ", input on chip" : "";
    const text = [`${folded ? "▸ " : ""}${short(row.name, narrow ? 24 : 48)}`, row.kind, ...(narrow ? [] : [(row.place === "host core" ? "core" : row.place) + onChip]), whole(row.cycles), ...(narrow || row.exact === "equal" || !compared ? [] : [row.exact.split(":")[0]])].join(" · ");
    made.push(button(text, () => folded ? view.fold(row.block) : choose(row), {
      class: "layer", "data-index": row.index, title: row.name, "aria-current": String(row === chosen), ...(folded ? {"aria-expanded": "false"} : {}),
      style: `--share:${(100 * row.cycles / most).toFixed(2)}%;--of:color-mix(in srgb, ${UNITS[row.unit]} 38%, transparent)`}));
  }
  at("network").append(...made, arcs(places, made.length * 26, narrow ? 40 : 96));
  if (!rows.length) none(at("network"), "No layer matches.");
  if (rows.length && !chosen) choose(data.layers.reduce((a, b) => a.cycles >= b.cycles ? a : b));
}

function roofline() {
  const points = data.layers.filter(layer => layer.macs && layer.cycles && layer.place !== "host core" && layer.read + layer.written)
    .map(layer => ({layer, x: layer.macs / (layer.read + layer.written), y: layer.macs / layer.cycles}));
  const {conv, conv23, bus} = data.roofs, top = conv23 || conv;
  if (!points.length) { none(at("roofline"), "No layer multiplies on the coprocessor."); return; }
  const width = widthOf(at("roofline")), height = points.length < 8 || width < 600 ? 260 : 420, left = 46, right = 20, bottom = 40, dot = Math.min(1, width / 900);
  const lowX = Math.min(...points.map(each => each.x), top / bus) / 2, highX = Math.max(...points.map(each => each.x), top / bus) * 2;
  const lowY = Math.min(...points.map(each => each.y)) / 2, highY = Math.max(top, ...points.map(each => each.y)) * 1.6;
  const log = (value, low, high) => Math.log(value / low) / Math.log(high / low);
  const x = value => left + log(value, lowX, highX) * (width - left - right), y = value => height - bottom - log(value, lowY, highY) * (height - bottom - 12);
  const all = drawing(width, height, `Roofline of ${points.length} layers: at most ${digits(Math.max(...points.map(each => each.y)))} MAC per cycle, the array's limit is ${digits(top)}`);
  const ticks = (low, high) => { const found = []; for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) for (const each of width < 600 ? [1] : [1, 2, 5]) { const value = each * 10 ** power; if (value >= low && value <= high) found.push(value); } return found; };
  for (const value of ticks(lowX, highX)) all.append(shape("line", {x1: x(value), x2: x(value), y1: 12, y2: height - bottom, class: "grid"}), shape("text", {x: x(value), y: height - bottom + 16, "text-anchor": "middle", class: "soft"}, digits(value)));
  for (const value of ticks(lowY, highY)) all.append(shape("line", {x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid"}), shape("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "soft"}, digits(value)));
  all.append(shape("text", {x: width - right, y: height - 4, "text-anchor": "end", class: "soft"}, "MAC per byte of main memory"), shape("text", {x: 4, y: 10, class: "soft"}, "MAC per cycle"));
  const bent = (limit, dashed) => all.append(shape("path", {class: `roof${dashed ? " dashed" : ""}`, d: `M ${x(Math.max(lowX, lowY / bus))} ${y(Math.max(lowX, lowY / bus) * bus)} L ${x(limit / bus)} ${y(limit)} L ${x(highX)} ${y(limit)}`}));
  bent(conv, Boolean(conv23));
  all.append(shape("text", {x: width - right - 4, y: y(conv) - 5, "text-anchor": "end"}, `conv: ${digits(conv)} MAC per cycle`));
  if (conv23) { bent(conv23, false); all.append(shape("text", {x: width - right - 4, y: y(conv23) - 5, "text-anchor": "end"}, `conv23: ${digits(conv23)} MAC per cycle`)); }
  const middle = Math.sqrt(Math.max(lowX, lowY / bus) * conv / bus);
  all.append(shape("text", {x: x(middle) - 10, y: y(middle * bus) - 8, "text-anchor": "end"}, `bus: ${digits(bus)} bytes per cycle`));
  const kinds = [...new Set(points.map(each => each.layer.unit))];
  for (const {layer, x: perByte, y: perCycle} of points)
    all.append(tipped(shape("circle", {class: "point", cx: x(perByte), cy: y(perCycle), r: dot * (4 + 9 * Math.sqrt(layer.cycles / data.cycles)), fill: UNITS[layer.unit], "fill-opacity": 0.65, stroke: variable("--ink"), "stroke-width": 0.6}),
      `${layer.name} (${layer.kind}, limited by ${LIMITS[layer.unit]})\n${digits(perCycle)} MAC per cycle, ${digits(perByte)} MAC per byte\n${whole(layer.cycles)} cycles`));
  at("roofline").append(legend(kinds), all);
}

function mainMemory() {
  if (!data.memory) { none(at("memory"), "The plan of memory is not known of a model that was compiled before."); return; }
  const {lives} = data.memory;
  const width = widthOf(at("memory")), height = lives.length < 8 ? 130 : 300, left = 70, layers = Math.max(1, data.layers.length);
  const most = Math.max(...lives.map(([, start, size]) => start + size), 1), step = (width - left - 4) / layers;
  const y = address => height - 20 - address / most * (height - 30), all = drawing(width, height, `Main memory from layer to layer: ${lives.length} tensors in ${bytes(most)}`);
  lives.forEach(([name, start, size, first, last], index) => all.append(tipped(shape("rect", {
    x: left + first * step, width: Math.max(1, (last - first + 1) * step - 0.5), y: y(start + size), height: Math.max(1, y(start) - y(start + size) - 0.3),
    fill: index % 2 ? SHADES.weight_buffer : UNITS.load, opacity: 0.75, stroke: variable("--ground"), "stroke-width": 0.5}), `${name}\n${bytes(size)} at ${whole(start)} of the tensors\nlayers ${first} to ${last}`)));
  for (const share of [0, 0.5, 1]) all.append(shape("text", {x: left - 6, y: y(share * most) + 4, "text-anchor": "end", class: "soft"}, bytes(share * most)));
  all.append(shape("text", {x: left, y: height - 4, class: "soft"}, "first layer"), shape("text", {x: width - 4, y: height - 4, "text-anchor": "end", class: "soft"}, "last layer"));
  at("memory").append(element("p", {}, `${bytes(data.memory.bytes)} in all, of which ${bytes(data.memory.weights)} are weights and constants, which stay for the whole run and are not drawn.`), all);
}

function buffers() {
  if (!data.timeline) { none(at("buffers"), "What the buffers hold was not recorded."); return; }
  const width = widthOf(at("buffers")), left = Math.min(250, Math.max(150, width * 0.2)), height = 46, list = data.timeline.buffers;
  const all = drawing(width, list.length * height, `Buffers over time: ${list.map(each => `${each.name} at most ${bytes(Math.max(...each.level))} of ${bytes(each.capacity)}`).join(", ")}`);
  list.forEach(({name, capacity, level}, index) => {
    const bottom = (index + 1) * height - 4, most = Math.max(...level), step = (width - left) / level.length;
    const points = level.map((value, at) => `L ${left + at * step} ${bottom - value / capacity * (height - 10)} h ${step}`).join(" ");
    all.append(shape("rect", {x: left, y: bottom - height + 10, width: width - left, height: height - 10, fill: "none", class: "grid"}),
      tipped(shape("path", {d: `M ${left} ${bottom} ${points} V ${bottom} Z`, fill: [SHADES.activation_buffer, SHADES.weight_buffer, SHADES.result_buffer][index % 3], opacity: 0.9}), `${name}: at most ${bytes(most)} of ${bytes(capacity)}`),
      shape("text", {x: left - 8, y: bottom - 18, "text-anchor": "end"}, name),
      shape("text", {x: left - 8, y: bottom - 3, "text-anchor": "end", class: "soft"}, `at most ${bytes(most)} of ${bytes(capacity)}`));
  });
  at("buffers").append(all);
}

function layerTable(rows) {
  const perCycle = layer => layer.cycles ? layer.macs / layer.cycles : 0;
  const stall = layer => Object.entries(layer.busy).filter(([cause]) => cause !== "mac_issue").sort((a, b) => b[1] - a[1])[0] || ["", 0];
  const name = (text, row) => row.members.length > 1 ? button(`▸ ${text}`, () => view.fold(row.block), {class: "link", "aria-expanded": "false"})
    : button(text, () => { choose(row); at("plan").scrollIntoView({block: "center"}); }, {class: "link"});
  sortableTable(at("layers"), [
    ["layer", layer => layer.name, name, true], ["order", layer => layer.index],
    ["kind", layer => `${layer.kind}${layer.place === "host core" && layer.operator ? ` ${layer.operator}` : ""}`, null, true],
    ["limited by", layer => LIMITS[layer.unit], null, true], ["beside ONNX Runtime", layer => layer.exact.split(":")[0], null, true],
    ["MAC", layer => layer.macs, whole], ["cycles", layer => layer.cycles, whole],
    ["share, %", layer => 100 * layer.cycles / data.cycles, digits], ["MAC per cycle", perCycle, digits],
    ["main stall, of its cycles", layer => layer.cycles ? stall(layer)[1] / layer.cycles : 0, (share, layer) => share ? `${words(stall(layer)[0])} ${digits(100 * share)} %` : "–"],
    ["read, bytes", layer => layer.read, whole], ["written, bytes", layer => layer.written, whole],
    ["energy, µJ (absolute range)", layer => layer.energy, (energy, layer) => `${digits(energy)} (${digits(layer.low)} … ${digits(layer.high)})`],
  ], rows);
}

function outputs() {
  if (!data.outputs.length) { at("outputs").append(element("tr", {}, element("td", {}, "No output was compared."))); return; }
  sortableTable(at("outputs"), [["output", ([name]) => name, null, true], ["beside ONNX Runtime", ([, verdict]) => verdict, null, true]], data.outputs);
}

// What depends on which layers are shown.
function drawRows() {
  for (const name of ["network", "stalls", "energy"]) at(name).replaceChildren();
  const rows = view.rows();
  view.say(data.cycles);
  network(rows);
  layerTable(rows);
  stackedBars(at("stalls"), rows.map(layer => ({name: layer.name, parts: layer.busy})), "cycles", "Cycles by cause");
  stackedBars(at("energy"), rows.map(layer => ({name: layer.name, parts: layer.components})), "µJ", "Energy by component");
  if (window.timeline) window.timeline.filter(rows);
}

function draw() {
  for (const name of ["roofline", "memory", "buffers"]) at(name).replaceChildren();
  drawRows();
  roofline();
  mainMemory();
  buffers();
  if (window.timeline) window.timeline.draw();
}

const view = new LayerView(data.layers, () => drawRows());
figures();
costs();
if (data.timeline && data.layers.length) window.timeline = new Timeline(at("timeline"), data.timeline, data.layers, data.cycles);
else none(at("timeline"), "No times of commands were recorded in this run: run without --layers and --jobs.");
outputs();
at("command").textContent = data.command;
at("design").textContent = JSON.stringify(data.design, null, 2);
at("notes").append(...data.notes.map(note => element("li", {}, note)));
draw();
themeButton(draw);
redrawn(draw);
document.documentElement.dataset.ready = "yes";
