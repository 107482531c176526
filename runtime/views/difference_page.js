"use strict";
// The page of two runs: totals, changes of the design, and layers as pairs of bars and as a table.

const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const SIDES = ["first", "second"], SIDE_COLOURS = ["#1f6bb0", "#9a5b12"];
const state = {text: "", what: "cycles", order: ""};
const value = (layer, side, what) => layer[side] ? layer[side][what] : 0;
const gain = (layer, what) => value(layer, "first", what) - value(layer, "second", what);
const ratio = (layer, what) => layer.first && layer.second && layer.first[what] ? layer.second[what] / layer.first[what] : null;

function figures() {
  for (const {name, first, second, ratio} of data.totals)
    at("figures").append(element("div", {class: "figure"}, element("span", {}, name), element("b", {}, `${digits(first)} → ${digits(second)}`),
      element("small", {}, ratio === null ? "" : `${digits(ratio)} times the first, ${ratio <= 1 ? `${digits(100 * (1 - ratio))} % less` : `${digits(100 * (ratio - 1))} % more`}`)));
}

function pairs(rows) {
  const place = at("pairs"), width = widthOf(place), left = Math.min(250, Math.max(100, width * 0.3)), right = width < 600 ? 62 : 90, height = 32;
  const most = Math.max(...rows.flatMap(layer => SIDES.map(side => value(layer, side, state.what))), 1e-12);
  const pictures = inSheets(rows, height).map(some => {
    const picture = drawing(width, some.length * height + 4, `${state.what} of ${some.length} layers in both runs`);
    some.forEach((layer, index) => {
      const y = index * height + 2;
      picture.append(tipped(shape("text", {x: left - 8, y: y + 17, "text-anchor": "end"}, short(layer.name, letters(left - 10))), layer.name));
      SIDES.forEach((side, which) => {
        const much = value(layer, side, state.what), long = much / most * (width - left - right), top = y + 2 + 13 * which;
        picture.append(tipped(shape("rect", {x: left, y: top, width: Math.max(0.5, long), height: 11, fill: SIDE_COLOURS[which]}), `${layer.name}\n${data[side]}: ${layer[side] ? digits(much) : "not there"}\n${layer.changes}`),
          shape("text", {x: left + long + 6, y: top + 10, class: "soft"}, layer[side] ? digits(much) : "–"));
      });
    });
    return picture;
  });
  const key = element("div", {class: "legend"}, ...SIDES.map((side, which) => element("span", {}, element("i", {style: `background:${SIDE_COLOURS[which]}`}), data[side])));
  place.replaceChildren(key, rows.length ? element("div", rows.length > 20 ? {class: "scroll", tabindex: "0", role: "region", "aria-label": "Bars of layers"} : {}, ...pictures) : element("p", {class: "none"}, "No layer matches."));
}

function table(rows) {
  const number = each => each === null ? "–" : digits(each);
  const pair = (name, what) => [...SIDES.map(side => [`${name}, ${side}`, layer => layer[side] ? layer[side][what] : null, number]), [`ratio of ${name.split(",")[0]}`, layer => ratio(layer, what), number]];
  sortableTable(at("layers"), [["layer", layer => layer.name, null, true], ...pair("cycles", "cycles"), ...pair("bytes", "bytes"), ...pair("energy, µJ", "energy"), ["what changed", layer => layer.changes, null, true]], rows);
}

function draw() {
  const wanted = state.text.toLowerCase().split(/\s+/);
  const rows = data.layers.filter(layer => wanted.every(word => `${layer.name} ${layer.changes}`.toLowerCase().includes(word)));
  if (state.order) rows.sort((a, b) => (state.order === "gain" ? 1 : -1) * (gain(b, state.what) - gain(a, state.what)));
  const [first, second] = SIDES.map(side => rows.reduce((sum, layer) => sum + value(layer, side, state.what), 0));
  at("found").textContent = `${rows.length} of ${data.layers.length} layers: ${digits(first)} → ${digits(second)}`;
  pairs(rows);
  table(rows);
}

for (const [name, key] of [["search", "text"], ["what", "what"], ["order", "order"]]) at(name).addEventListener("input", event => { state[key] = event.target.value; draw(); });
figures();
if (data.design.length) sortableTable(at("design"), [["parameter", row => row.key, null, true], [data.first, row => row.first], [data.second, row => row.second]], data.design);
else at("design").append(element("tbody", {}, element("tr", {}, element("td", {}, "Nothing."))));
at("command").textContent = data.command;
draw();
themeButton(draw);
redrawn(draw);
document.documentElement.dataset.ready = "yes";
