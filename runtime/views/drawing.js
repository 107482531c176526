"use strict";
// Helpers to draw with: elements, numbers, colours of units, tips, stacked bars, tables that sort.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#1f6bb0", "#9a5b12", "#2d7a45", "#b3373c", "#6f4fae", "#7a5f47", "#a8418a", "#5c6573"];

// A unit has one colour on the whole page; what belongs to it has a shade of that.
const UNITS = {core: "#b3373c", load: "#1f6bb0", array: "#2d7a45", post: "#6f4fae", store: "#9a5b12"};
const SHADES = {
  mac_issue: UNITS.array, mac_wait_activations: UNITS.load, mac_wait_weights: "#5b9bd5", mac_idle_load: "#9cc4e8",
  mac_wait_post: UNITS.post, mac_idle_post: "#a58bd6", mac_idle_host: UNITS.core, mac_setup: "#7d8590",
  main_memory: "#174a80", load: UNITS.load, weight_buffer: "#5b9bd5", activation_buffer: "#9cc4e8", parameter_buffer: "#c3dcf2",
  array: UNITS.array, sums: "#6fb08a", sequencer: "#a9d3b8", post_processing: UNITS.post, value_table: "#a58bd6",
  result_buffer: "#cdbdea", store: UNITS.store, control: "#7d8590", riscv_core: UNITS.core, ...UNITS,
};
const paint = (name, index) => SHADES[name] || COLOURS[index % COLOURS.length];

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

let printing = false;
const PAPER = 700;
// A picture is drawn as wide as its place, so that its letters have the size of the text around it.
const widthOf = place => printing ? PAPER : Math.max(280, place.clientWidth || document.querySelector("main").clientWidth - 40);
const drawing = (width, height, label) => shape("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
const whole = value => Math.round(value).toLocaleString("en-GB");
const digits = value => value >= 1000 ? whole(value) : String(+value.toPrecision(3));
const bytes = value => value >= 1 << 20 ? `${digits(value / (1 << 20))} MiB` : value >= 1024 ? `${digits(value / 1024)} KiB` : `${whole(value)} B`;
const words = name => name.replace(/^mac_/, "").replaceAll("_", " ");
// Names begin alike and end alike: what is cut is their middle.
const short = (text, most) => text.length > most ? text.slice(0, Math.ceil((most - 1) / 2)) + "…" + text.slice(text.length - Math.floor((most - 1) / 2)) : text;
const letters = pixels => Math.max(4, Math.floor(pixels / 6.8));
const PRINTED = {"--ground": "#ffffff", "--ink": "#000000", "--soft": "#333b46", "--line": "#c3c8d0"};
const variable = name => printing ? PRINTED[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function button(text, action, attributes = {}) {
  const made = element("button", {type: "button", ...attributes}, text);
  made.addEventListener("click", action);
  return made;
}

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

// Draw again when the window's width changes, and in the width of a sheet for the printer.
function redrawn(again) {
  let width = innerWidth, waiting = null;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(again, 120);
  });
  addEventListener("beforeprint", () => { printing = true; again(); });
  addEventListener("afterprint", () => { printing = false; again(); });
}

// A sheet cannot break a picture: on paper rows are drawn in several.
const SHEET = 800;
function inSheets(rows, height) {
  const most = printing ? Math.floor(SHEET / height) : rows.length;
  return Array.from({length: Math.ceil(rows.length / most)}, (_, sheet) => rows.slice(sheet * most, (sheet + 1) * most));
}

function tipped(made, text) {
  made.addEventListener("mousemove", event => tip.show(event, text));
  made.addEventListener("mouseleave", () => tip.hide());
  return made;
}

function legend(names) {
  const made = element("div", {class: "legend"});
  names.forEach((name, index) => made.append(element("span", {}, element("i", {style: `background:${paint(name, index)}`}), words(name))));
  return made;
}

// Rows of {name, parts: {part: value}}; the longest row fills the width.
function stackedBars(place, rows, unit, label) {
  const parts = [...new Set(rows.flatMap(row => Object.keys(row.parts)))]
    .map(name => [name, rows.reduce((sum, row) => sum + (row.parts[name] || 0), 0)])
    .filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]);
  if (!parts.length) { place.append(element("p", {class: "none"}, "Nothing to show.")); return; }
  const height = 20, width = widthOf(place), left = Math.min(250, Math.max(100, width * 0.3)), right = width < 600 ? 62 : 90;
  const sumOf = row => parts.reduce((sum, [part]) => sum + (row.parts[part] || 0), 0);
  const most = Math.max(...rows.map(sumOf), 1e-12), all = parts.reduce((sum, part) => sum + part[1], 0);
  const said = parts.slice(0, 3).map(([name, sum]) => `${words(name)} ${digits(100 * sum / all)} %`).join(", ");
  const pictures = inSheets(rows, height).map((some, sheet, every) => {
    const picture = drawing(width, some.length * height + 4, `${label} of ${some.length} rows${every.length > 1 ? `, part ${sheet + 1}` : ""}; in all ${said}`);
    some.forEach((row, index) => {
      const y = index * height + 2;
      picture.append(tipped(shape("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, short(row.name, letters(left - 10))), row.name));
      let x = left;
      parts.forEach(([part], which) => {
        const value = row.parts[part] || 0, long = value / most * (width - left - right);
        if (long > 0.2) picture.append(tipped(shape("rect", {x, y: y + 2, width: long, height: height - 5, fill: paint(part, which)}),
          `${row.name}\n${words(part)}: ${digits(value)} ${unit}, ${digits(100 * value / sumOf(row))} %`));
        x += long;
      });
      picture.append(shape("text", {x: x + 6, y: y + 14, class: "soft"}, digits(sumOf(row))));
    });
    return picture;
  });
  const box = element("div", rows.length > 30 ? {class: "scroll", tabindex: "0", role: "region", "aria-label": label} : {}, ...pictures);
  place.append(legend(parts.map(([name]) => name)), box);
}

// Columns of [head, value of a row, text or node of a value, whether it is words]. Returns what fills it with other rows.
function sortableTable(table, columns, rows) {
  const body = element("tbody"), head = element("tr");
  let sorted = -1, down = false, shown = rows;
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""));
  const fill = () => {
    const order = sorted < 0 ? shown : [...shown].sort((a, b) => (down ? -1 : 1) * compare(columns[sorted][1](a), columns[sorted][1](b)));
    body.replaceChildren(...order.map(row => {
      const line = element("tr");
      columns.forEach(([, value, text, isWords]) => line.append(element("td", isWords ? {class: "words"} : {}, text ? text(value(row), row) : String(value(row) ?? ""))));
      return line;
    }));
  };
  columns.forEach(([name, , , isWords], index) => {
    const cell = element("th", {scope: "col", ...(isWords ? {class: "words"} : {})}, element("button", {type: "button"}, name));
    cell.addEventListener("click", () => {
      down = sorted === index ? !down : !isWords;
      sorted = index;
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      fill();
    });
    head.append(cell);
  });
  fill();
  table.replaceChildren(element("thead", {}, head), body);
  return others => { shown = others; fill(); };
}
