"use strict";
// A page of figures and tables: each table sorts, one of its columns may be drawn as bars.

const at = name => document.getElementById(name);

function table(given) {
  const rows = given.lines.map((line, order) => ({line, order}));
  const bars = given.head.indexOf(given.bars), place = element("section", {}, element("h2", {}, given.title));
  if (bars >= 0) stackedBars(place, given.lines.map(line => ({name: String(line[0]), parts: {[given.bars]: line[bars] || 0}})), "", given.title);
  const isWords = given.head.map((_, column) => given.lines.some(line => typeof line[column] === "string" && line[column] !== ""));
  const text = value => value === null ? "–" : typeof value === "number" ? (Number.isInteger(value) ? whole(value) : digits(value)) : value;
  const made = element("table");
  sortableTable(made, given.head.map((name, column) => [name, row => row.line[column], text, isWords[column]]), rows);
  place.append(element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${given.title}`}, made));
  return place;
}

function draw(data) {
  at("figures").replaceChildren(...data.figures.map(([name, value, remark]) => element("div", {class: "figure"}, element("span", {}, name), element("b", {}, value), element("small", {}, remark))));
  at("tables").replaceChildren(...data.tables.map(table));
  at("command").textContent = data.command;
  at("notes").replaceChildren(...data.notes.map(note => element("li", {}, note)));
}

const again = () => draw(JSON.parse(at("data").textContent));
again();
themeButton();
redrawn(again);
document.documentElement.dataset.ready = "yes";
