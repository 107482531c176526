"use strict";
// The page of a run: each section is drawn from the data in it.

const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const none = (place, why) => place.append(element("p", {class: "none"}, why));

function figures() {
  for (const [name, value, remark] of data.figures)
    at("figures").append(element("div", {class: "figure"}, element("span", {}, name), element("b", {}, value), element("small", {}, remark)));
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

function network() {
  const row = 26, left = 130, width = 700, layers = data.layers, most = Math.max(...layers.map(layer => layer.cycles), 1);
  const all = drawing(width, layers.length * row + 8, "Layers and the results they take");
  const y = index => index * row + row / 2 + 4;
  for (const [from, to] of data.edges) {
    if (to - from === 1 || (from < 0 && to === 0)) { if (from >= 0) all.append(shape("line", {x1: left + 6, x2: left + 6, y1: y(from) + 9, y2: y(to) - 9, class: "grid"})); continue; }
    const start = from < 0 ? 4 : y(from), end = y(to), out = left - 6 - Math.min(110, 8 + 6 * Math.sqrt(to - from) * 2);
    all.append(tipped(shape("path", {d: `M ${left} ${start} C ${out} ${start}, ${out} ${end}, ${left} ${end}`, fill: "none", stroke: colour(from + 1), "stroke-width": 1.4}),
      `${from < 0 ? "input" : layers[from].name} → ${layers[to].name}`));
  }
  layers.forEach((layer, index) => {
    const core = layer.place === "host core", group = shape("g", {class: "layer", style: "cursor:pointer", tabindex: "0"});
    const onChip = layer.plan && layer.plan.on_chip && layer.plan.on_chip.input ? ", input on chip" : "";
    group.append(shape("rect", {x: left, y: y(index) - 9, width: Math.max(2, layer.cycles / most * (width - left - 4)), height: 18, rx: 2, fill: core ? "#c44e52" : colour(index), opacity: 0.55}),
      shape("text", {x: left + 6, y: y(index) + 4}, `${short(layer.name, 44)} · ${layer.kind} · ${core ? "core" : "coprocessor"}${onChip} · ${whole(layer.cycles)} · ${layer.exact}`));
    group.addEventListener("click", () => plan(layer));
    group.addEventListener("keydown", event => { if (event.key === "Enter") plan(layer); });
    all.append(group);
  });
  at("network").append(all);
  if (layers.length) plan(layers.reduce((a, b) => a.cycles >= b.cycles ? a : b));
}

function roofline() {
  const points = data.layers.filter(layer => layer.macs && layer.cycles && layer.place !== "host core" && layer.read + layer.written)
    .map(layer => ({layer, x: layer.macs / (layer.read + layer.written), y: layer.macs / layer.cycles}));
  const {conv, conv23, bus} = data.roofs, top = conv23 || conv;
  if (!points.length) { none(at("roofline"), "No layer multiplies on the coprocessor."); return; }
  const width = 1200, height = 420, left = 60, right = 20, bottom = 40;
  const lowX = Math.min(...points.map(each => each.x), top / bus) / 2, highX = Math.max(...points.map(each => each.x), top / bus) * 2;
  const lowY = Math.min(...points.map(each => each.y)) / 2, highY = Math.max(top, ...points.map(each => each.y)) * 1.6;
  const log = (value, low, high) => Math.log(value / low) / Math.log(high / low);
  const x = value => left + log(value, lowX, highX) * (width - left - right), y = value => height - bottom - log(value, lowY, highY) * (height - bottom - 12);
  const all = drawing(width, height, "Roofline");
  const ticks = (low, high) => { const found = []; for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) for (const each of [1, 2, 5]) { const value = each * 10 ** power; if (value >= low && value <= high) found.push(value); } return found; };
  for (const value of ticks(lowX, highX)) all.append(shape("line", {x1: x(value), x2: x(value), y1: 12, y2: height - bottom, class: "grid"}), shape("text", {x: x(value), y: height - bottom + 16, "text-anchor": "middle", class: "soft"}, digits(value)));
  for (const value of ticks(lowY, highY)) all.append(shape("line", {x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid"}), shape("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "soft"}, digits(value)));
  all.append(shape("text", {x: width - right, y: height - 4, "text-anchor": "end", class: "soft"}, "MAC per byte of main memory"), shape("text", {x: 4, y: 10, class: "soft"}, "MAC per cycle"));
  const bent = (limit, dashed) => all.append(shape("path", {class: `roof${dashed ? " dashed" : ""}`, d: `M ${x(Math.max(lowX, lowY / bus))} ${y(Math.max(lowX, lowY / bus) * bus)} L ${x(limit / bus)} ${y(limit)} L ${x(highX)} ${y(limit)}`}));
  bent(conv, Boolean(conv23));
  all.append(shape("text", {x: width - right - 4, y: y(conv) - 5, "text-anchor": "end"}, `conv: ${digits(conv)} MAC per cycle`));
  if (conv23) { bent(conv23, false); all.append(shape("text", {x: width - right - 4, y: y(conv23) - 5, "text-anchor": "end"}, `conv23: ${digits(conv23)} MAC per cycle`)); }
  const middle = Math.sqrt(Math.max(lowX, lowY / bus) * conv / bus);
  all.append(shape("text", {x: x(middle) - 10, y: y(middle * bus) - 8, "text-anchor": "end"}, `bus: ${digits(bus)} bytes per cycle`));
  const kinds = [...new Set(points.map(each => each.layer.kind))];
  for (const {layer, x: perByte, y: perCycle} of points)
    all.append(tipped(shape("circle", {class: "point", cx: x(perByte), cy: y(perCycle), r: 4 + 9 * Math.sqrt(layer.cycles / data.cycles), fill: colour(kinds.indexOf(layer.kind)), "fill-opacity": 0.65, stroke: variable("--ink"), "stroke-width": 0.6}),
      `${layer.name} (${layer.kind})\n${digits(perCycle)} MAC per cycle, ${digits(perByte)} MAC per byte\n${whole(layer.cycles)} cycles`));
  at("roofline").append(legend(kinds), all);
}

function mainMemory() {
  if (!data.memory) { none(at("memory"), "The plan of memory is not known of a model that was compiled before."); return; }
  const width = 1200, height = 300, left = 70, layers = Math.max(1, data.layers.length), {lives} = data.memory;
  const most = Math.max(...lives.map(([, start, size]) => start + size), 1), step = (width - left - 4) / layers;
  const y = address => height - 20 - address / most * (height - 30), all = drawing(width, height, "Main memory from layer to layer");
  lives.forEach(([name, start, size, first, last], index) => all.append(tipped(shape("rect", {
    x: left + first * step, width: Math.max(1, (last - first + 1) * step - 0.5), y: y(start + size), height: Math.max(1, y(start) - y(start + size) - 0.3),
    fill: colour(index), opacity: 0.75}), `${name}\n${bytes(size)} at ${whole(start)} of the tensors\nlayers ${first} to ${last}`)));
  for (const share of [0, 0.5, 1]) all.append(shape("text", {x: left - 6, y: y(share * most) + 4, "text-anchor": "end", class: "soft"}, bytes(share * most)));
  all.append(shape("text", {x: left, y: height - 4, class: "soft"}, "first layer"), shape("text", {x: width - 4, y: height - 4, "text-anchor": "end", class: "soft"}, "last layer"));
  at("memory").append(element("p", {}, `${bytes(data.memory.bytes)} in all, of which ${bytes(data.memory.weights)} are weights and constants, which stay for the whole run and are not drawn.`), all);
}

function buffers() {
  if (!data.timeline) { none(at("buffers"), "What the buffers hold was not recorded."); return; }
  const width = 1200, left = 250, height = 46, list = data.timeline.buffers;
  const all = drawing(width, list.length * height, "Buffers over time");
  list.forEach(({name, capacity, level}, index) => {
    const bottom = (index + 1) * height - 4, most = Math.max(...level), step = (width - left) / level.length;
    const points = level.map((value, at) => `L ${left + at * step} ${bottom - value / capacity * (height - 10)} h ${step}`).join(" ");
    all.append(shape("rect", {x: left, y: bottom - height + 10, width: width - left, height: height - 10, fill: "none", class: "grid"}),
      tipped(shape("path", {d: `M ${left} ${bottom} ${points} V ${bottom} Z`, fill: colour(index), opacity: 0.8}), `${name}: at most ${bytes(most)} of ${bytes(capacity)}`),
      shape("text", {x: left - 8, y: bottom - 18, "text-anchor": "end"}, name),
      shape("text", {x: left - 8, y: bottom - 3, "text-anchor": "end", class: "soft"}, `at most ${bytes(most)} of ${bytes(capacity)}`));
  });
  at("buffers").append(all);
}

function layerTable() {
  data.layers.forEach((layer, index) => layer.index = index);
  const perCycle = layer => layer.cycles ? layer.macs / layer.cycles : 0;
  const stall = layer => Object.entries(layer.busy).filter(([cause]) => cause !== "mac_issue").sort((a, b) => b[1] - a[1])[0] || ["", 0];
  sortableTable(at("layers"), [
    ["layer", layer => layer.name, null, true], ["order", layer => layer.index], ["kind", layer => layer.kind, null, true],
    ["place", layer => layer.place, null, true], ["beside ONNX Runtime", layer => layer.exact, null, true],
    ["MAC", layer => layer.macs, whole], ["cycles", layer => layer.cycles, whole],
    ["share, %", layer => 100 * layer.cycles / data.cycles, digits], ["MAC per cycle", perCycle, digits],
    ["main stall", layer => stall(layer)[1] ? words(stall(layer)[0]) : "–", null, true],
    ["of its cycles, %", layer => layer.cycles ? 100 * stall(layer)[1] / layer.cycles : 0, digits],
    ["read, bytes", layer => layer.read, whole], ["written, bytes", layer => layer.written, whole],
    ["energy, µJ", layer => layer.energy, digits], ["absolute range, µJ", layer => layer.low, (low, layer) => `${digits(low)} … ${digits(layer.high)}`],
  ], data.layers);
}

function outputs() {
  if (!data.outputs.length) { at("outputs").append(element("tr", {}, element("td", {}, "No output was compared."))); return; }
  sortableTable(at("outputs"), [["output", ([name]) => name, null, true], ["beside ONNX Runtime", ([, verdict]) => verdict, null, true]], data.outputs);
}

function draw() {
  for (const name of ["figures", "timeline", "network", "plan", "roofline", "stalls", "energy", "memory", "buffers", "outputs", "notes"]) at(name).replaceChildren();
  figures();
  if (data.timeline && data.layers.length) window.timeline = new Timeline(at("timeline"), data.timeline, data.layers, data.cycles);
  else none(at("timeline"), "No times of commands were recorded in this run: run without --layers and --jobs.");
  network();
  roofline();
  stackedBars(at("stalls"), data.layers.map(layer => ({name: layer.name, parts: layer.busy})), "cycles", "Cycles by cause");
  stackedBars(at("energy"), data.layers.map(layer => ({name: layer.name, parts: layer.components})), "µJ", "Energy by component");
  mainMemory();
  buffers();
  outputs();
  layerTable();
  at("command").textContent = data.command;
  at("design").textContent = JSON.stringify(data.design, null, 2);
  at("notes").append(...data.notes.map(note => element("li", {}, note)));
}

themeButton(draw);
draw();
document.documentElement.dataset.ready = "yes";
