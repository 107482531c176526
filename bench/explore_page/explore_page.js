"use strict";
// The page of an exploration: the table of the front, and commands that a click copies.

const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);

function copy(command) {
  const done = () => { at("copied").textContent = `Copied: ${command}`; setTimeout(() => { at("copied").textContent = ""; }, 4000); };
  const byHand = () => {
    const box = element("textarea", {"aria-hidden": "true", style: "position:fixed;opacity:0"});
    box.value = command;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(command).then(done, byHand); else byHand();
}

function front() {
  const number = value => typeof value === "number" ? (Number.isInteger(value) ? whole(value) : digits(value)) : String(value ?? "–");
  sortableTable(at("front"), [
    ["design", row => row.name, name => element("a", {href: `designs/${encodeURIComponent(name)}.toml`}, name), true],
    ...data.objectives.map(name => [data.heads[name], row => row.measures[name], digits]),
    ...data.axes.map(name => [data.heads[name], row => row.chosen[name], number]),
    ["cycles in RTL", row => row.cycles], ["area by synthesis", row => row.area],
    ["command", row => row.command, command => button("copy", () => copy(command), {title: command, "aria-label": `Copy: ${command}`})],
  ], data.front);
}

for (const plot of document.querySelectorAll(".js-plotly-plot")) {
  const name = plot.closest("section").querySelector("h2").textContent, words = plot.closest("figure").querySelector("figcaption").textContent;
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${name}: ${words}`);
  plot.on("plotly_click", event => { const command = event.points[0]?.customdata; if (command) copy(command); });
}

function resize(width) {
  for (const plot of document.querySelectorAll(".js-plotly-plot")) Plotly.relayout(plot, width ? {width, autosize: false} : {width: null, autosize: true});
}

front();
themeButton();
addEventListener("beforeprint", () => resize(PAPER));
addEventListener("afterprint", () => resize(0));
document.documentElement.dataset.ready = "yes";
