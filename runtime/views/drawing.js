"use strict";
// Helpers to draw with: elements, numbers, colours, tips, stacked bars, tables that sort.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#2f7fc1", "#e08a2c", "#3f9e5a", "#c44e52", "#8b6cc1", "#937860", "#d678b6", "#7d8590", "#b8ad2e", "#37a7b8", "#4a5aa8", "#a0522d", "#6fb08a", "#a38bd8", "#5f6b3a", "#cf6f4a"];

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

const drawing = (width, height, label) => shape("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
const whole = value => Math.round(value).toLocaleString("en-GB");
const digits = value => value >= 1000 ? whole(value) : String(+value.toPrecision(3));
const bytes = value => value >= 1 << 20 ? `${digits(value / (1 << 20))} MiB` : value >= 1024 ? `${digits(value / 1024)} KiB` : `${whole(value)} B`;
const words = name => name.replace(/^mac_/, "").replaceAll("_", " ");
const short = (text, most) => text.length > most ? "…" + text.slice(1 - most) : text;
const colour = index => COLOURS[index % COLOURS.length];
const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const tip = {
  show(event, text) {
    const box = document.getElementById("tip");
    box.textContent = text;
    box.hidden = false;
    const right = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 6);
    box.style.left = `${Math.max(4, right)}px`;
    box.style.top = `${event.clientY + box.offsetHeight + 20 > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 14}px`;
  },
  hide() { document.getElementById("tip").hidden = true; },
};

// The button that changes between light and dark; what has colours of its own is drawn again.
function themeButton(again = () => {}) {
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    again();
  });
}

function tipped(made, text) {
  made.addEventListener("mousemove", event => tip.show(event, text));
  made.addEventListener("mouseleave", () => tip.hide());
  return made;
}

function legend(names) {
  const made = element("div", {class: "legend"});
  names.forEach((name, index) => made.append(element("span", {}, element("i", {style: `background:${colour(index)}`}), words(name))));
  return made;
}

// Rows of {name, parts: {part: value}}; the longest row fills the width.
function stackedBars(place, rows, unit, label) {
  const parts = [...new Set(rows.flatMap(row => Object.keys(row.parts)))]
    .map(name => [name, rows.reduce((sum, row) => sum + (row.parts[name] || 0), 0)])
    .filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]).map(([name]) => name);
  if (!parts.length) { place.append(element("p", {class: "none"}, "Nothing to show.")); return; }
  const height = 20, left = 250, right = 90, width = 1200;
  const sums = rows.map(row => parts.reduce((sum, part) => sum + (row.parts[part] || 0), 0));
  const most = Math.max(...sums, 1e-12);
  const all = drawing(width, rows.length * height + 4, label);
  rows.forEach((row, index) => {
    const y = index * height + 2;
    all.append(tipped(shape("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, short(row.name, 36)), row.name));
    let x = left;
    parts.forEach((part, which) => {
      const value = row.parts[part] || 0, long = value / most * (width - left - right);
      if (long > 0.2) all.append(tipped(shape("rect", {x, y: y + 2, width: long, height: height - 5, fill: colour(which)}),
        `${row.name}\n${words(part)}: ${digits(value)} ${unit}, ${digits(100 * value / sums[index])} %`));
      x += long;
    });
    all.append(shape("text", {x: x + 6, y: y + 14, class: "soft"}, digits(sums[index])));
  });
  place.append(legend(parts), element("div", {class: rows.length > 30 ? "scroll" : ""}, all));
}

// Columns of [head, value of a row, text of a value, whether it is words].
function sortableTable(table, columns, rows) {
  const body = element("tbody"), head = element("tr");
  let sorted = -1, down = false;
  const fill = order => body.replaceChildren(...order.map(row => {
    const line = element("tr");
    columns.forEach(([, value, text, isWords]) => line.append(element("td", isWords ? {class: "words"} : {}, text ? text(value(row), row) : String(value(row) ?? ""))));
    return line;
  }));
  columns.forEach(([name, value, , isWords], index) => {
    const cell = element("th", {scope: "col", tabindex: "0", ...(isWords ? {class: "words"} : {})}, name);
    const sort = () => {
      down = sorted === index ? !down : !isWords;
      sorted = index;
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""));
      fill([...rows].sort((a, b) => (down ? -1 : 1) * compare(value(a), value(b))));
    };
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
    head.append(cell);
  });
  fill(rows);
  table.replaceChildren(element("thead", {}, head), body);
}
