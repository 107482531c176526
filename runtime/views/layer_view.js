"use strict";
// Which layers a page shows: those that match the filter, a folded block as one row.

const BOUNDS = {"host core": "core", compute: "array", memory: "load", "post-processing": "post"};
const LIMITS = {core: "the host core", array: "the array", load: "the bus", post: "post-processing"};

// The unit that limits a layer: as its plan says, else by what its cycles went to.
function unitOf(layer) {
  if (layer.place === "host core") return "core";
  if (layer.plan) return BOUNDS[layer.plan.bound] || "array";
  const [cause] = Object.entries(layer.busy).sort((a, b) => b[1] - a[1])[0] || ["mac_issue"];
  return /post/.test(cause) ? "post" : /weights|activations|load/.test(cause) ? "load" : "array";
}

const added = (layers, key) => layers.reduce((sum, layer) => sum + layer[key], 0);
function addedParts(layers, key) {
  const sums = {};
  for (const layer of layers) for (const [name, value] of Object.entries(layer[key])) sums[name] = (sums[name] || 0) + value;
  return sums;
}

// Several layers as one row: what can be added is added.
function merged(name, layers) {
  const units = layers.map(unitOf), largest = layers.reduce((a, b) => a.cycles >= b.cycles ? a : b);
  const equal = layers.filter(layer => layer.exact === "equal").length;
  return {
    name, block: name, members: layers, index: layers[0].index, kind: `${layers.length} layers`, place: new Set(layers.map(layer => layer.place)).size > 1 ? "both" : layers[0].place,
    unit: units[layers.indexOf(largest)], exact: equal === layers.length ? "equal" : `${equal} of ${layers.length} equal`,
    macs: added(layers, "macs"), cycles: added(layers, "cycles"), read: added(layers, "read"), written: added(layers, "written"),
    energy: added(layers, "energy"), low: added(layers, "low"), high: added(layers, "high"), busy: addedParts(layers, "busy"), components: addedParts(layers, "components"),
  };
}

const MANY_LAYERS = 60;

class LayerView {
  constructor(layers, again) {
    Object.assign(this, {layers, again, text: "", limit: "", kind: "", folded: new Set()});
    layers.forEach((layer, index) => Object.assign(layer, {index, unit: unitOf(layer), members: [layer]}));
    this.blocks = new Map();
    for (const layer of layers) this.blocks.set(layer.block, [...(this.blocks.get(layer.block) || []), layer]);
    this.several = [...this.blocks].filter(([, members]) => members.length > 1).map(([name]) => name);
    if (layers.length > MANY_LAYERS) this.several.forEach(name => this.folded.add(name));
    this.controls();
  }

  matches(layer) {
    const said = [layer.name, layer.kind, layer.operator, layer.block, ...layer.nodes].join(" ").toLowerCase();
    return (!this.limit || layer.unit === this.limit) && (!this.kind || layer.kind === this.kind)
      && this.text.toLowerCase().split(/\s+/).every(word => said.includes(word));
  }

  // A row a layer, or a folded block, in order.
  rows() {
    const rows = [];
    for (const [name, members] of this.blocks) {
      const mine = members.filter(layer => this.matches(layer));
      if (mine.length > 1 && this.folded.has(name)) rows.push(merged(name, mine)); else rows.push(...mine);
    }
    return rows;
  }

  fold(name) {
    if (!this.folded.delete(name)) this.folded.add(name);
    this.again();
  }

  foldAll(yes) {
    this.folded = new Set(yes ? this.several : []);
    this.again();
  }

  controls() {
    const at = name => document.getElementById(name);
    const option = (value, text) => element("option", {value}, text);
    const kinds = [...new Set(this.layers.map(layer => layer.kind))], units = [...new Set(this.layers.map(layer => layer.unit))];
    at("limit").append(option("", "anything"), ...units.map(unit => option(unit, LIMITS[unit])));
    at("kind").append(option("", "any"), ...kinds.map(kind => option(kind, kind)));
    if (this.several.length > 1) at("folds").append(button("fold blocks", () => this.foldAll(true)), button("unfold", () => this.foldAll(false)));
    at("search").addEventListener("input", event => { this.text = event.target.value; this.again(); });
    at("limit").addEventListener("change", event => { this.limit = event.target.value; this.again(); });
    at("kind").addEventListener("change", event => { this.kind = event.target.value; this.again(); });
    at("filter").hidden = this.layers.length < 2;
  }

  say(cycles) {
    const shown = this.layers.filter(layer => this.matches(layer)), sum = added(shown, "cycles");
    document.getElementById("found").textContent = `${shown.length} of ${this.layers.length} layers, ${whole(sum)} cycles, ${digits(100 * sum / cycles)} %`;
  }
}
