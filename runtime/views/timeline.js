"use strict";
// The timeline: a track a unit on a canvas, from the whole run to one command, and sums over an interval of it.

const NAMED_IN_SUM = 5;

class Timeline {
  constructor(place, data, layers, cycles) {
    Object.assign(this, {data, layers, cycles, from: 0, to: cycles, chosen: null, interval: null});
    this.tracks = Object.entries(data.tracks).map(([unit, track]) => {
      let at = 0;
      const begin = track.begin.map(step => at += step);
      return {unit, begin, length: track.length, name: track.name, layer: track.layer};
    });
    this.starts = layers.reduce((starts, layer) => [...starts, starts.at(-1) + layer.cycles], [0]);
    this.waits = data.names.map(name => name.startsWith("waits"));
    this.bands = this.layers.map((layer, index) => ({name: layer.name, unit: layer.unit, first: index, last: index, dim: false}));
    this.canvas = element("canvas", {tabindex: "0", role: "application", "aria-label": "Timeline of the units: plus and minus zoom, the arrows move, 0 shows the whole run; the sums of what is shown stand below"});
    this.shown = element("output", {});
    this.sums = element("div", {style: "overflow-x:auto", tabindex: "0", role: "region", "aria-label": "Sums over an interval"});
    this.ends = ["from", "to"].map(name => {
      const made = element("input", {type: "number", min: "0", max: String(cycles), "aria-label": `Sum ${name} cycle`});
      made.addEventListener("change", () => this.pick(+this.ends[0].value, +this.ends[1].value));
      return made;
    });
    const zoom = (text, title, action) => button(text, action, {title, "aria-label": title});
    this.detail = element("p", {class: "detail"}, "Nothing chosen.");
    place.append(element("div", {class: "bar"},
      zoom("+", "Zoom in", () => this.zoom(0.5)), zoom("−", "Zoom out", () => this.zoom(2)),
      zoom("◀", "Earlier", () => this.move(-0.25)), zoom("▶", "Later", () => this.move(0.25)),
      zoom("all", "Show the whole run", () => this.show(0, this.cycles)), this.shown), this.canvas, this.detail,
      element("div", {class: "bar"}, "sum from", this.ends[0], "to", this.ends[1], button("what is shown", () => this.pick(this.from, this.to, true))), this.sums);
    this.listen();
    new ResizeObserver(() => { if (!printing) this.draw(); }).observe(this.canvas);
    this.draw();
  }

  listen() {
    const canvas = this.canvas;
    let held = null;
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.shiftKey) this.move(Math.sign(event.deltaY || event.deltaX) * 0.1);
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.cycle(event));
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
      held = {x: event.clientX, from: this.from, to: this.to, moved: false, begin: event.shiftKey ? this.cycle(event) : null};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!held) { this.point(event); return; }
      const by = (held.x - event.clientX) / this.pixels * (held.to - held.from);
      if (Math.abs(held.x - event.clientX) > 3) held.moved = true;
      if (held.moved && held.begin !== null) { this.pick(held.begin, this.cycle(event)); return; }
      if (held.moved) this.show(held.from + by, held.to + by);
    });
    canvas.addEventListener("pointerup", event => {
      if (held && !held.moved) this.choose(event);
      held = null;
    });
    canvas.addEventListener("pointerleave", () => tip.hide());
    canvas.addEventListener("dblclick", () => this.show(0, this.cycles));
    canvas.addEventListener("keydown", event => {
      const action = {"+": () => this.zoom(0.5), "-": () => this.zoom(2), ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1), "0": () => this.show(0, this.cycles)}[event.key];
      if (action) { event.preventDefault(); action(); }
    });
  }

  x(cycle) { return 60 + (cycle - this.from) / (this.to - this.from) * this.pixels; }
  cycle(event) { return this.from + (event.offsetX - 60) / this.pixels * (this.to - this.from); }

  show(from, to) {
    const length = Math.min(this.cycles, Math.max(8, to - from));
    this.from = Math.max(0, Math.min(from, this.cycles - length));
    this.to = this.from + length;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  // Choose an interval to add up; without one it is what is shown.
  pick(begin, end, all = false) {
    const [low, high] = [begin, end].map(cycle => Math.round(Math.max(0, Math.min(this.cycles, cycle)))).sort((a, b) => a - b);
    this.interval = all || high <= low ? null : [low, high];
    this.draw();
  }

  // Rows of the page's list: a band each, what is not among them is pale.
  filter(rows) {
    const bands = [], seen = new Set();
    for (const row of rows) {
      row.members.forEach(layer => seen.add(layer.index));
      const whole = row.members.every((layer, place) => layer.index === row.members[0].index + place);
      if (whole) bands.push({name: row.name, unit: row.unit, first: row.members[0].index, last: row.members.at(-1).index, dim: false});
      else row.members.forEach(layer => bands.push({name: layer.name, unit: layer.unit, first: layer.index, last: layer.index, dim: false}));
    }
    this.layers.forEach((layer, index) => { if (!seen.has(index)) bands.push({name: layer.name, unit: layer.unit, first: index, last: index, dim: true}); });
    this.bands = bands.sort((a, b) => a.first - b.first);
    this.pale = this.layers.map((_, index) => !seen.has(index));
    this.draw();
  }

  sum() {
    const [begin, end] = this.interval || [this.from, this.to], span = end - begin;
    if (document.activeElement !== this.ends[0]) this.ends[0].value = Math.round(begin);
    if (document.activeElement !== this.ends[1]) this.ends[1].value = Math.round(end);
    const overlap = (from, to) => Math.max(0, Math.min(end, to) - Math.max(begin, from));
    const units = this.tracks.map(track => {
      let busy = 0, count = 0;
      for (let index = this.first(track, begin); index < track.begin.length && track.begin[index] < end; index++) {
        if (!this.waits[track.name[index]]) busy += overlap(track.begin[index], track.begin[index] + track.length[index]);
        count++;
      }
      return {unit: track.unit, busy, count};
    });
    const layers = this.layers.map((layer, index) => [layer.name, overlap(this.starts[index], this.starts[index + 1])]).filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1]);
    const most = layers.slice(0, NAMED_IN_SUM).map(([name, cycles]) => `${short(name, 40)} ${whole(cycles)}`).join(", ");
    const line = (tag, ...cells) => element("tr", {}, ...cells.map((cell, place) => element(tag, {class: place ? "" : "words", ...(tag === "th" ? {scope: "col"} : {})}, ...[cell].flat())));
    this.sums.replaceChildren(element("table", {class: "sum"},
      element("caption", {}, `Cycles ${whole(begin)} to ${whole(end)}, ${whole(span)} in all; layers: ${most}${layers.length > NAMED_IN_SUM ? ` and ${layers.length - NAMED_IN_SUM} more` : ""}`),
      element("thead", {}, line("th", "unit", "under way, cycles", "of the interval, %", "commands, calls and waits")),
      element("tbody", {}, ...units.map(({unit, busy, count}) => line("td", [element("i", {style: `background:${UNITS[unit]}`}), unit], whole(busy), digits(100 * busy / span), whole(count))))));
  }

  zoom(factor, around = (this.from + this.to) / 2) { this.show(around - (around - this.from) * factor, around + (this.to - around) * factor); }
  move(share) { const by = share * (this.to - this.from); this.show(this.from + by, this.to + by); }

  // Index of the first slice of a track that ends behind a cycle.
  first(track, cycle) {
    let low = 0, high = track.begin.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.begin[middle] + track.length[middle] <= cycle) low = middle + 1; else high = middle;
    }
    return low;
  }

  hit(event) {
    const row = Math.floor((event.offsetY - 22) / 30);
    const cycle = this.cycle(event);
    if (event.offsetX < 60 || event.offsetY < 22) return null;
    if (row === 0) {
      const band = this.bands.find(each => this.starts[each.first] <= cycle && cycle < this.starts[each.last + 1]);
      return band ? {band} : null;
    }
    const track = this.tracks[row - 1];
    if (!track) return null;
    const slack = (this.to - this.from) / this.pixels;
    const index = this.first(track, cycle - slack);
    return index < track.begin.length && track.begin[index] <= cycle + slack ? {track, index} : null;
  }

  describe(hit) {
    if (!hit.track) {
      const {name, first, last} = hit.band, begin = this.starts[first], end = this.starts[last + 1];
      return `${name}: cycles ${whole(begin)} to ${whole(end)}, ${whole(end - begin)} in all`;
    }
    const {track, index} = hit, begin = track.begin[index], length = track.length[index];
    const layer = this.layers[track.layer[index]];
    return `${track.unit}: ${this.data.names[track.name[index]]}, cycles ${whole(begin)} to ${whole(begin + length)}, ${whole(length)} in all; ${layer ? layer.name : "end of the program"}`;
  }

  point(event) {
    const hit = this.hit(event);
    if (hit) tip.show(event, this.describe(hit)); else tip.hide();
  }

  choose(event) {
    const hit = this.hit(event);
    if (!hit) return;
    this.detail.textContent = this.describe(hit);
    if (hit.track) { this.chosen = hit; this.draw(); return; }
    this.show(this.starts[hit.band.first], this.starts[hit.band.last + 1]);
  }

  draw() {
    const canvas = this.canvas, scale = devicePixelRatio || 1, height = 22 + 30 * (this.tracks.length + 1) + 4;
    const width = printing ? PAPER : canvas.clientWidth || 1000;
    this.pixels = Math.max(1, width - 60);
    canvas.style.height = `${height}px`;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    this.ink = variable("--ink");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.axis(pen, width);
    this.band(pen);
    this.tracks.forEach((track, row) => this.track(pen, track, 22 + 30 * (row + 1)));
    if (this.interval) {
      const [left, right] = this.interval.map(cycle => Math.max(60, Math.min(width, this.x(cycle))));
      pen.strokeStyle = this.ink;
      pen.lineWidth = 2;
      pen.strokeRect(left, 19, Math.max(1, right - left), height - 22);
    }
    this.sum();
    this.shown.textContent = `cycles ${whole(this.from)} to ${whole(this.to)} of ${whole(this.cycles)}, ${this.data.measured ? "measured in RTL" : "predicted"}`;
  }

  axis(pen, width) {
    const span = this.to - this.from, power = 10 ** Math.floor(Math.log10(span / 6));
    const step = Math.max(1, [1, 2, 5, 10, 20, 50].map(each => each * power).find(each => span / each <= Math.min(10, Math.max(2, width / 100))));
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at);
      pen.fillStyle = variable("--line");
      pen.fillRect(x, 18, 1, 22 + 30 * (this.tracks.length + 1));
      pen.fillStyle = variable("--soft");
      if (x < width - 50) pen.fillText(whole(at), x + 3, 9);
    }
    pen.fillStyle = this.ink;
    ["layer", ...this.tracks.map(track => track.unit)].forEach((name, row) => pen.fillText(name, 6, 22 + 30 * row + 14));
  }

  band(pen) {
    for (const {name, unit, first, last, dim} of this.bands) {
      const left = Math.max(60, this.x(this.starts[first])), right = Math.min(60 + this.pixels, this.x(this.starts[last + 1]));
      if (right - left > 0) this.block(pen, left, 22, right - left, UNITS[unit], name, dim);
    }
  }

  block(pen, x, y, width, fill, text, dim = false) {
    pen.globalAlpha = dim ? 0.25 : 1;
    pen.fillStyle = fill;
    pen.fillRect(x, y + 2, Math.max(0.6, width - (width > 4 ? 1 : 0)), 25);
    pen.globalAlpha = 1;
    if (width > 40) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, width - 3, 30);
      pen.clip();
      pen.fillStyle = dim ? this.ink : "#ffffff";
      pen.fillText(short(text, letters(width - 8)), x + 4, y + 15);
      pen.restore();
    }
  }

  // Slices of less than a pixel are drawn together: the darker, the more of the pixel they fill.
  track(pen, track, y) {
    const filled = new Float32Array(this.pixels + 1), pale = new Uint8Array(this.pixels + 1);
    const perPixel = (this.to - this.from) / this.pixels;
    for (let index = this.first(track, this.from); index < track.begin.length && track.begin[index] < this.to; index++) {
      const begin = Math.max(this.from, track.begin[index]), end = Math.min(this.to, track.begin[index] + track.length[index]);
      const left = (begin - this.from) / perPixel, right = (end - this.from) / perPixel;
      if (right - left >= 2) {
        this.block(pen, 60 + left, y, right - left, UNITS[track.unit], this.data.names[track.name[index]], this.waits[track.name[index]] || this.pale?.[track.layer[index]]);
        if (this.chosen && this.chosen.track === track && this.chosen.index === index) {
          pen.strokeStyle = this.ink;
          pen.lineWidth = 2;
          pen.strokeRect(60 + left, y + 2, right - left, 25);
        }
        continue;
      }
      for (let pixel = Math.floor(left); pixel <= right && pixel < filled.length; pixel++) {
        filled[pixel] += Math.max(0, Math.min(right, pixel + 1) - Math.max(left, pixel));
        pale[pixel] = this.waits[track.name[index]] || this.pale?.[track.layer[index]] ? 1 : 0;
      }
    }
    filled.forEach((share, pixel) => {
      if (!share) return;
      pen.globalAlpha = (pale[pixel] ? 0.25 : 1) * Math.min(1, 0.25 + 0.75 * share);
      pen.fillStyle = UNITS[track.unit];
      pen.fillRect(60 + pixel, y + 2, 1, 25);
    });
    pen.globalAlpha = 1;
  }
}
