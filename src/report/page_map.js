// The arenas of a plan: the bytes of each step by category, and below these each buffer as
// a rectangle of steps and offsets.

const fields = ["category", "offset", "bytes", "first", "last", "what", "subject",
                "microBatch", "writer", "reader", "kept"];
const mapHeight = 360, curveHeight = 150, mapLeft = 78, mapFoot = 22, mapHead = 8;

function bufferOf(row) {
  return Object.fromEntries(fields.map((name, i) => [name, row[i]]));
}

class ArenaMap {
  constructor(place, plan, space, measured) {
    this.plan = plan;
    this.space = space;
    this.measured = measured;
    this.buffers = space.buffers.map(bufferOf);
    this.words = new Map(plan.steps.map((step) => [step[0], step]));
    this.selected = null;
    const what = space.name + " memory";
    this.curve = this.canvas(curveHeight, what + " by category over the steps of the plan");
    this.map = this.canvas(mapHeight, "map of the " + space.name + " arena: arrow keys go " +
      "from buffer to buffer, Escape leaves");
    this.map.tabIndex = 0;
    this.about = element("div", {className: "about"});
    this.about.setAttribute("aria-live", "polite");
    const [sums, sumsPlace] = tableBehindButton(what + " by category", () => this.sumRows());
    const [all, allPlace] = tableBehindButton("buffers of the " + space.name,
                                              () => this.bufferRows());
    place.append(element("h3", {}, this.title()), this.legend(), this.curve, this.map,
      this.about, element("div", {className: "tools"}, "bytes by category: ", sums,
                          "buffers: ", all), sumsPlace, allPlace);
    if (space.left_out > 0) {
      place.append(element("p", {}, "The map has the steps " + space.first + " to " +
        space.last + ", around the fullest one; " + space.left_out +
        " buffers of other steps are left out."));
    }
    this.listen();
    this.draw();
  }

  canvas(height, label) {
    const made = element("canvas");
    made.style.height = height + "px";
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", label);
    return made;
  }

  title() {
    const peak = this.space.name + ": planned peak " + sizeText(this.space.total);
    return this.measured ? peak + ", measured " + sizeText(this.measured) : peak;
  }

  legend() {
    const made = element("div", {className: "legend"});
    this.plan.categories.forEach((name, c) => {
      if (this.space.curve.some((row) => row[c + 1] > 0)) {
        made.append(element("span", {}, swatch(schemeColor(categoryColors[c])), name));
      }
    });
    return made;
  }

  // ---- words

  text(number) {
    return number >= 0 ? this.plan.texts[number] : "";
  }

  stepText(number) {
    const step = this.words.get(number);
    if (!step) { return "step " + number; }
    const [, kind, what, subject, micro] = step;
    return [this.text(kind), this.text(what), this.text(subject)].filter(Boolean).join(" ") +
      (micro >= 0 ? ", micro-batch " + micro : "") + " (step " + number + ")";
  }

  bufferText(b) {
    const name = [this.text(b.what), this.text(b.subject)].filter(Boolean).join(" of ");
    const parts = [
      name + (b.microBatch >= 0 ? ", micro-batch " + b.microBatch : ""),
      this.plan.categories[b.category],
      b.bytes + " bytes (" + sizeText(b.bytes) + ") at offset " + b.offset,
      b.kept ? "kept" : "steps " + b.first + " to " + b.last,
    ];
    if (b.writer >= 0) { parts.push("written by " + this.stepText(b.writer)); }
    if (b.reader >= 0) { parts.push("last read by " + this.stepText(b.reader)); }
    return parts.join("; ");
  }

  // ---- places

  sizes(canvas, height) {
    const {context, width} = prepareCanvas(canvas, height);
    return {context, width: width - mapLeft - 8, height: height - mapFoot - mapHead};
  }

  // Both pictures have the steps of the map.
  x(step, width) {
    const {first, last} = this.space;
    return mapLeft + (step - first) / (last + 1 - first) * width;
  }

  y(offset, height) {
    return mapHead + height * (1 - offset / this.space.total);
  }

  axes(context, width, height) {
    context.fillStyle = styleValue("--dim");
    context.strokeStyle = styleValue("--line");
    context.textAlign = "right";
    for (const share of [0, 0.5, 1]) {
      const y = this.y(share * this.space.total, height);
      context.strokeRect(mapLeft, y, width, 0);
      context.fillText(sizeText(Math.round(share * this.space.total)), mapLeft - 6, y + 4);
    }
    context.textAlign = "left";
    context.fillText("step " + this.space.first, mapLeft, mapHead + height + 15);
    context.textAlign = "right";
    context.fillText("step " + this.space.last, mapLeft + width, mapHead + height + 15);
  }

  // ---- pictures

  draw() {
    this.drawCurve();
    this.drawMap();
  }

  drawCurve() {
    const {context, width, height} = this.sizes(this.curve, curveHeight);
    const rows = this.space.curve;
    this.axes(context, width, height);
    rows.forEach((row, i) => {
      const next = i + 1 < rows.length ? rows[i + 1][0] : this.plan.count;
      if (next <= this.space.first || row[0] > this.space.last) { return; }
      const left = Math.max(this.x(row[0], width), mapLeft);
      const right = Math.min(this.x(next, width), mapLeft + width);
      let sum = 0;
      this.plan.categories.forEach((_, c) => {
        const bottom = this.y(sum, height);
        sum += row[c + 1];
        context.fillStyle = schemeColor(categoryColors[c]);
        context.fillRect(left, this.y(sum, height), right - left + 0.3,
                         bottom - this.y(sum, height));
      });
    });
    if (this.measured) {
      context.strokeStyle = styleValue("--text");
      context.setLineDash([4, 3]);
      context.strokeRect(mapLeft, this.y(Math.min(this.measured, this.space.total), height),
                         width, 0);
      context.setLineDash([]);
    }
  }

  rectangle(b, width, height) {
    const left = Math.max(this.x(b.first, width), mapLeft);
    const right = Math.min(this.x(b.last + 1, width), mapLeft + width);
    const top = this.y(b.offset + b.bytes, height);
    return [left, top, right - left, this.y(b.offset, height) - top];
  }

  drawMap() {
    const {context, width, height} = this.sizes(this.map, mapHeight);
    this.axes(context, width, height);
    context.lineWidth = 0.5;
    context.strokeStyle = styleValue("--panel");
    for (const b of this.buffers) {
      const box = this.rectangle(b, width, height);
      context.fillStyle = schemeColor(categoryColors[b.category]);
      context.fillRect(...box);
      if (box[2] > 2 && box[3] > 2) { context.strokeRect(...box); }
    }
    if (this.selected) {
      context.lineWidth = 2;
      context.strokeStyle = styleValue("--text");
      context.strokeRect(...this.rectangle(this.selected, width, height));
    }
  }

  // ---- pointing

  // The buffer whose bytes and steps these are; null: nobody's.
  at(pixelX, pixelY) {
    const width = this.map.clientWidth - mapLeft - 8, height = mapHeight - mapFoot - mapHead;
    const {first, last, total} = this.space;
    const step = first + Math.floor((pixelX - mapLeft) / width * (last + 1 - first));
    const offset = (1 - (pixelY - mapHead) / height) * total;
    return this.buffers.find((b) => b.first <= step && step <= b.last &&
      b.offset <= offset && offset < b.offset + b.bytes) || null;
  }

  select(buffer) {
    this.selected = buffer;
    this.about.textContent = buffer ? this.bufferText(buffer) : "";
    this.drawMap();
  }

  listen() {
    this.map.addEventListener("pointermove", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (found !== this.selected) { this.select(found); }
    });
    this.map.addEventListener("keydown", (event) => {
      const moves = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
      if (event.key in moves && this.buffers.length > 0) {
        const from = this.buffers.indexOf(this.selected);
        const count = this.buffers.length;
        const to = from < 0 ? 0 : (from + moves[event.key] + count) % count;
        this.select(this.buffers[to]);
        event.preventDefault();
      } else if (event.key === "Escape") {
        this.select(null);
      }
    });
    new ResizeObserver(() => this.draw()).observe(this.map);
    darkScheme.addEventListener("change", () => this.draw());
  }

  // ---- tables

  sumRows() {
    return [["step", ...this.plan.categories],
            ...this.space.curve.map((row) => [this.stepText(row[0]), ...row.slice(1).map(String)])];
  }

  bufferRows() {
    const heads = ["buffer", "category", "offset", "bytes", "first step", "last step",
                   "written by", "last read by"];
    return [heads, ...this.buffers.map((b) => [
      [this.text(b.what), this.text(b.subject)].filter(Boolean).join(" of ") +
        (b.microBatch >= 0 ? ", micro-batch " + b.microBatch : ""),
      this.plan.categories[b.category], String(b.offset), String(b.bytes), String(b.first),
      String(b.last), b.writer >= 0 ? this.stepText(b.writer) : "-",
      b.reader >= 0 ? this.stepText(b.reader) : "-",
    ])];
  }
}
