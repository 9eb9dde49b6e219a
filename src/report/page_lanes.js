// The streams of a step as planned and as traced, one above the other, over one time.

const laneHeight = 18, laneLeft = 150, laneFoot = 22;

function spanOf(row) {
  const [lane, name, kind, begin, length, step, micro, critical] = row;
  return {lane, name, kind, begin, length, step, micro, critical: critical === 1};
}

class Lanes {
  constructor(place, times) {
    this.times = [["planned", times.planned], ["traced", times.traced]]
      .filter(([, of]) => of)
      .map(([title, of]) => ({...of, title, spans: of.spans.map(spanOf)
        .sort((a, b) => a.begin - b.begin || a.step - b.step)}));
    this.lanes = this.times.flatMap((of) => of.lanes.map(([rank, stream], number) => ({
      of, title: of.title + ", rank " + rank + ", " + stream,
      spans: of.spans.filter((span) => span.lane === number)})));
    this.kinds = [...new Set(this.times.flatMap((of) =>
      of.spans.map((span) => of.names[span.kind])))];
    this.end = Math.max(...this.times.map((of) => of.end));
    this.from = 0;
    this.to = this.end;
    this.selected = null;
    this.canvas = element("canvas", {tabIndex: 0});
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "streams of a step over its time: arrow keys go " +
      "along a stream and between streams, plus and minus zoom, 0 shows all, Escape leaves");
    this.height = this.lanes.length * laneHeight + laneFoot;
    this.canvas.style.height = this.height + "px";
    this.about = element("div", {className: "about"});
    this.about.setAttribute("aria-live", "polite");
    const [button, table] = tableBehindButton("spans of the step", () => this.rows());
    place.append(this.legend(), this.canvas, this.about,
      element("div", {className: "tools"}, "spans: ", button), table);
    for (const of of this.times.filter((one) => one.left_out > 0)) {
      place.append(element("p", {}, of.title + ": the " + of.left_out +
        " shortest spans are left out of the picture, not out of the tables."));
    }
    this.listen();
    this.draw();
  }

  color(of, span) {
    const kind = this.kinds.indexOf(of.names[span.kind]);
    return schemeColor(categoryColors[kind % categoryColors.length]);
  }

  legend() {
    const made = element("div", {className: "legend"});
    this.kinds.forEach((name, k) => made.append(element("span", {},
      swatch(schemeColor(categoryColors[k % categoryColors.length])), name)));
    made.append(element("span", {}, "underlined: the critical path"));
    return made;
  }

  // ---- pictures

  x(time, width) {
    return laneLeft + (time - this.from) / (this.to - this.from) * width;
  }

  drawLane(context, lane, number, width) {
    const top = number * laneHeight + 2, inside = laneHeight - 4;
    context.fillStyle = styleValue("--dim");
    context.textAlign = "right";
    context.fillText(lane.title, laneLeft - 6, top + inside - 3);
    for (const span of lane.spans) {
      const left = Math.max(this.x(span.begin, width), laneLeft);
      const right = Math.min(this.x(span.begin + span.length, width), laneLeft + width);
      if (right < laneLeft || left > laneLeft + width) { continue; }
      context.fillStyle = this.color(lane.of, span);
      context.fillRect(left, top, Math.max(right - left, 0.5), inside);
      if (span.critical) {
        context.fillStyle = styleValue("--text");
        context.fillRect(left, top + inside, Math.max(right - left, 0.5), 2);
      }
      if (span === this.selected) {
        context.strokeStyle = styleValue("--text");
        context.strokeRect(left, top, Math.max(right - left, 1), inside);
      }
    }
  }

  draw() {
    const {context, width: all} = prepareCanvas(this.canvas, this.height);
    const width = all - laneLeft - 8;
    this.lanes.forEach((lane, number) => this.drawLane(context, lane, number, width));
    context.fillStyle = styleValue("--dim");
    context.textAlign = "left";
    context.fillText(this.timeText(this.from), laneLeft, this.height - 6);
    context.textAlign = "right";
    context.fillText(this.timeText(this.to), laneLeft + width, this.height - 6);
  }

  timeText(microseconds) {
    return numberText(microseconds / 1000) + " ms";
  }

  // ---- pointing

  text(lane, span) {
    const of = lane.of;
    return lane.title + ": " + of.names[span.name] +
      (span.micro >= 0 ? ", micro-batch " + span.micro : "") + " (step " + span.step + "): " +
      this.timeText(span.length) + " from " + this.timeText(span.begin) + " on" +
      (span.critical ? "; on the critical path" : "");
  }

  select(lane, span) {
    this.lane = lane;
    this.selected = span;
    this.about.textContent = span ? this.text(lane, span) : "";
    if (span && (span.begin + span.length < this.from || span.begin > this.to)) {
      this.show(span.begin + span.length / 2, this.to - this.from);
    }
    this.draw();
  }

  // So much time, with this moment in its middle.
  show(middle, time) {
    const shown = Math.min(time, this.end);
    this.from = Math.min(Math.max(0, middle - shown / 2), this.end - shown);
    this.to = this.from + shown;
  }

  at(pixelX, pixelY) {
    const lane = this.lanes[Math.floor(pixelY / laneHeight)];
    const width = this.canvas.clientWidth - laneLeft - 8;
    const time = this.from + (pixelX - laneLeft) / width * (this.to - this.from);
    const slack = (this.to - this.from) / width;
    const span = lane && lane.spans.find((one) => one.begin - slack <= time &&
      time <= one.begin + one.length + slack);
    return [lane, span || null];
  }

  move(along, across) {
    const filled = this.lanes.filter((lane) => lane.spans.length > 0);
    if (!this.selected) {
      this.select(filled[0], filled[0].spans[0]);
      return;
    }
    if (along !== 0) {
      const spans = this.lane.spans;
      const to = spans.indexOf(this.selected) + along;
      this.select(this.lane, spans[Math.min(Math.max(0, to), spans.length - 1)]);
      return;
    }
    const number = filled.indexOf(this.lane) + across;
    const lane = filled[Math.min(Math.max(0, number), filled.length - 1)];
    const begin = this.selected.begin;
    this.select(lane, lane.spans.find((span) => span.begin + span.length >= begin) ||
      lane.spans[lane.spans.length - 1]);
  }

  listen() {
    const moves = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
    const zooms = {"+": 0.5, "=": 0.5, "-": 2, "0": Infinity};
    this.canvas.addEventListener("pointermove", (event) => {
      const [lane, span] = this.at(event.offsetX, event.offsetY);
      if (span !== this.selected) { this.select(lane, span); }
    });
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key in moves) {
        this.move(...moves[event.key]);
      } else if (event.key in zooms) {
        const at = this.selected ? this.selected.begin + this.selected.length / 2
                                 : (this.from + this.to) / 2;
        this.show(at, (this.to - this.from) * zooms[event.key]);
        this.draw();
      } else if (event.key === "Escape") {
        this.select(null, null);
      } else {
        return;
      }
      event.preventDefault();
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    darkScheme.addEventListener("change", () => this.draw());
  }

  rows() {
    const heads = ["stream", "what", "step", "micro-batch", "begins (ms)", "takes (ms)",
                   "critical"];
    return [heads, ...this.lanes.flatMap((lane) => lane.spans.map((span) => [
      lane.title, lane.of.names[span.name], String(span.step),
      span.micro >= 0 ? String(span.micro) : "-", numberText(span.begin / 1000),
      numberText(span.length / 1000), span.critical ? "yes" : "no"]))];
  }
}
