"use strict";
// The timeline: a track a unit on a canvas, from the whole run to one command.

class Timeline {
  constructor(place, data, layers, cycles) {
    Object.assign(this, {data, layers, cycles, from: 0, to: cycles, chosen: null});
    this.tracks = Object.entries(data.tracks).map(([unit, track]) => {
      let at = 0;
      const begin = track.begin.map(step => at += step);
      return {unit, begin, length: track.length, name: track.name, layer: track.layer};
    });
    this.starts = layers.reduce((starts, layer) => [...starts, starts.at(-1) + layer.cycles], [0]);
    this.canvas = element("canvas", {tabindex: "0", "aria-label": "Timeline of the units"});
    this.shown = element("output", {});
    const button = (text, title, action) => {
      const made = element("button", {type: "button", title}, text);
      made.addEventListener("click", action);
      return made;
    };
    this.detail = element("p", {class: "detail"}, "Nothing chosen.");
    place.append(element("div", {class: "bar"},
      button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)),
      button("◀", "Earlier", () => this.move(-0.25)), button("▶", "Later", () => this.move(0.25)),
      button("all", "Show the whole run", () => this.show(0, this.cycles)), this.shown), this.canvas, this.detail);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
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
      held = {x: event.clientX, from: this.from, to: this.to, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!held) { this.point(event); return; }
      const by = (held.x - event.clientX) / this.pixels * (held.to - held.from);
      if (Math.abs(held.x - event.clientX) > 3) held.moved = true;
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

  get pixels() { return Math.max(1, this.canvas.clientWidth - 60); }
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
      const layer = this.starts.findIndex((start, index) => start <= cycle && cycle < (this.starts[index + 1] ?? 0));
      return layer < 0 ? null : {layer};
    }
    const track = this.tracks[row - 1];
    if (!track) return null;
    const slack = (this.to - this.from) / this.pixels;
    const index = this.first(track, cycle - slack);
    return index < track.begin.length && track.begin[index] <= cycle + slack ? {track, index} : null;
  }

  describe(hit) {
    if (!hit.track) {
      const layer = this.layers[hit.layer];
      return `${layer.name}: cycles ${whole(this.starts[hit.layer])} to ${whole(this.starts[hit.layer + 1])}, ${whole(layer.cycles)} in all`;
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
    this.show(this.starts[hit.layer], this.starts[hit.layer + 1]);
  }

  draw() {
    const canvas = this.canvas, scale = devicePixelRatio || 1, height = 22 + 30 * (this.tracks.length + 1) + 4;
    const width = canvas.clientWidth || 1000;
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
    this.shown.textContent = `cycles ${whole(this.from)} to ${whole(this.to)} of ${whole(this.cycles)}, ${this.data.measured ? "measured in RTL" : "predicted"}`;
  }

  axis(pen, width) {
    const span = this.to - this.from, power = 10 ** Math.floor(Math.log10(span / 6));
    const step = Math.max(1, [1, 2, 5, 10].map(each => each * power).find(each => span / each <= 10));
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
    this.layers.forEach((layer, index) => {
      const left = Math.max(60, this.x(this.starts[index])), right = Math.min(60 + this.pixels, this.x(this.starts[index + 1]));
      if (right - left > 0) this.block(pen, left, 22, right - left, colour(index), layer.name);
    });
  }

  block(pen, x, y, width, fill, text) {
    pen.fillStyle = fill;
    pen.fillRect(x, y + 2, Math.max(0.6, width - (width > 4 ? 1 : 0)), 25);
    if (width > 40) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, width - 3, 30);
      pen.clip();
      pen.fillStyle = "#ffffff";
      pen.fillText(text, x + 4, y + 15);
      pen.restore();
    }
  }

  // Slices of less than a pixel are drawn together: the darker, the more of the pixel they fill.
  track(pen, track, y) {
    const filled = new Float32Array(this.pixels + 1), owner = new Int32Array(this.pixels + 1);
    const perPixel = (this.to - this.from) / this.pixels;
    for (let index = this.first(track, this.from); index < track.begin.length && track.begin[index] < this.to; index++) {
      const begin = Math.max(this.from, track.begin[index]), end = Math.min(this.to, track.begin[index] + track.length[index]);
      const left = (begin - this.from) / perPixel, right = (end - this.from) / perPixel;
      if (right - left >= 2) {
        this.block(pen, 60 + left, y, right - left, colour(track.layer[index]), this.data.names[track.name[index]]);
        if (this.chosen && this.chosen.track === track && this.chosen.index === index) {
          pen.strokeStyle = this.ink;
          pen.lineWidth = 2;
          pen.strokeRect(60 + left, y + 2, right - left, 25);
        }
        continue;
      }
      for (let pixel = Math.floor(left); pixel <= right && pixel < filled.length; pixel++) {
        filled[pixel] += Math.max(0, Math.min(right, pixel + 1) - Math.max(left, pixel));
        owner[pixel] = track.layer[index];
      }
    }
    filled.forEach((share, pixel) => {
      if (!share) return;
      pen.globalAlpha = Math.min(1, 0.25 + 0.75 * share);
      pen.fillStyle = colour(owner[pixel]);
      pen.fillRect(60 + pixel, y + 2, 1, 25);
    });
    pen.globalAlpha = 1;
  }
}
