// Curves of runs, by dygraphs.

const panels = [
  {title: "loss", keys: ["loss"], dashed: ["validation_loss"], smooths: true},
  {title: "accuracy", keys: ["accuracy"], dashed: ["validation_accuracy"], smooths: true},
  {title: "rate", keys: ["lr"]},
  {title: "gradient norm", keys: ["grad_norm"], smooths: true},
  {title: "noise scale", keys: ["noise_scale"]},
  {title: "batch", keys: ["train_batch_size"]},
  {title: "loss scale", keys: ["loss_scale"]},
  {title: "tokens per second", keys: ["tokens_per_second"], smooths: true},
  {title: "seconds of a step", keys: ["seconds"], smooths: true},
  {title: "seconds waiting for data", keys: ["wait_seconds"], smooths: true},
  {title: "seconds waiting for ranks", keys: ["ranks.wait_seconds"], smooths: true},
  {title: "device memory, measured; planned dashed", keys: ["peak_bytes.device"],
   dashed: ["planned_peak_bytes.device"], bytes: true},
  {title: "host memory, measured; planned dashed", keys: ["peak_bytes.host"],
   dashed: ["planned_peak_bytes.host"], bytes: true},
  {title: "memory of the process", keys: ["peak_bytes.process"], bytes: true},
];
const axes = {steps: null, samples: "samples", tokens: "tokens", seconds: "time"};

// Where a step lies on the axis: between the points of the series that counts it.
function placeOf(run, axis) {
  const counted = axes[axis] && run.series[axes[axis]];
  if (!counted) {
    return axes[axis] ? () => null : (step) => step;
  }
  const x = counted.x, y = counted.y;
  const begin = axis === "seconds" ? y[0] : 0;
  return (step) => {
    let low = 0, high = x.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] <= step) { low = middle; } else { high = middle; }
    }
    const share = x[high] > x[low] ? (step - x[low]) / (x[high] - x[low]) : 0;
    return y[low] + Math.min(1, Math.max(0, share)) * (y[high] - y[low]) - begin;
  };
}

// Two exponential means, one from each end, so that the curve does not lag behind.
function smoothed(values, keep) {
  const sums = values.map(() => 0);
  for (const backwards of [false, true]) {
    let mean = 0, weight = 0;
    for (let i = 0; i < values.length; i++) {
      const at = backwards ? values.length - 1 - i : i;
      mean = keep * mean + (1 - keep) * values[at];
      weight = keep * weight + (1 - keep);
      sums[at] += mean / weight / 2;
    }
  }
  return sums;
}

// The lines of a panel: {run, label, points: [[x, least, value, most], ...], ...}
function linesOf(panel, runs, choice) {
  const lines = [];
  runs.forEach((run, number) => {
    const place = placeOf(run, choice.axis);
    for (const key of panel.keys.concat(panel.dashed || [])) {
      const series = run.series[key];
      if (!series) { continue; }
      const dashed = !panel.keys.includes(key);
      const least = series.least || series.y, most = series.most || series.y;
      const raw = series.x.map((step, i) => [place(step), least[i], series.y[i], most[i]]);
      const smooths = panel.smooths && !dashed && choice.keep > 0 && series.x.length > 2;
      const line = {run: number, key, dashed, series, pale: smooths};
      lines.push({...line, points: raw});
      if (smooths) {
        const means = smoothed(series.y, choice.keep);
        lines.push({...line, pale: false, smooth: true,
                    points: raw.map((p, i) => [p[0], means[i], means[i], means[i]])});
      }
    }
  });
  return lines;
}

// All lines over all places: [[x, [least, value, most] or null, ...], ...]
function rowsOf(lines) {
  const rows = new Map();
  lines.forEach((line, number) => {
    for (const [x, least, value, most] of line.points) {
      if (x === null) { continue; }
      if (!rows.has(x)) {
        rows.set(x, [x, ...lines.map(() => [null, null, null])]);
      }
      rows.get(x)[number + 1] = [least, value, most];
    }
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

function lineName(line, runs) {
  const name = runs.length > 1 ? runs[line.run].name + ": " + line.key : line.key;
  return line.smooth ? name + ", smoothed" : name;
}

// Options of dygraphs. Its labels are numbers: names of others stay out of its markup.
function optionsOf(panel, lines, choice) {
  const series = {};
  lines.forEach((line, i) => {
    series[String(i + 1)] = {
      color: runColor(line.run),
      strokeWidth: line.pale ? 0.6 : 1.6,
      strokePattern: line.dashed ? [5, 3] : null,
      drawPoints: line.points.length < 40,
    };
  });
  const axisText = (value) => panel.bytes ? sizeText(value) : numberText(value);
  return {
    labels: ["x", ...lines.map((_, i) => String(i + 1))],
    series,
    customBars: true,
    fillAlpha: 0.15,
    connectSeparatedPoints: true,
    legend: "never",
    logscale: choice.log && lines.every((l) => l.points.every((p) => p[1] > 0)),
    gridLineColor: styleValue("--line"),
    axisLineColor: styleValue("--line"),
    highlightCircleSize: 4,
    rangeSelector: false,
    axes: {
      x: {axisLabelFormatter: numberText, drawGrid: false},
      y: {axisLabelFormatter: axisText, axisLabelWidth: panel.bytes ? 76 : 58},
    },
  };
}

const markColors = {skipped: "#c0392b", spike: "#b94c05", rollback: "#7a52c7",
                    resumed: "#1f7a8c", checkpoint: "#8a8f98"};

// What the lines across the loss mean, of those that there are.
function markLegend(runs) {
  const legend = element("div", {className: "legend"});
  for (const what of Object.keys(markColors)) {
    if (runs.some((run) => (run.marks || []).some((mark) => mark[1] === what))) {
      legend.append(element("span", {}, swatch(markColors[what]), what));
    }
  }
  return legend;
}

class Chart {
  constructor(panel, page) {
    this.panel = panel;
    this.page = page;
    this.plot = element("div", {className: "plot", tabIndex: 0});
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", panel.title +
      ": arrow keys move the cursor, plus and minus zoom, 0 shows all");
    this.values = element("div", {className: "values"});
    this.values.setAttribute("aria-live", "polite");
    const [button, place] = tableBehindButton(panel.title, () => this.numbers());
    this.box = element("div", {className: "chart"}, element("h3", {}, panel.title),
      this.plot, this.values, element("div", {className: "tools"}, button), place);
    this.box.dataset.chart = panel.title;
    if (panel === panels[0]) { this.plot.after(markLegend(page.runs)); }
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  draw() {
    this.lines = linesOf(this.panel, this.page.runs, this.page.choice);
    this.rows = rowsOf(this.lines);
    this.box.hidden = this.rows.length === 0;
    this.box.dataset.points = String(this.rows.length);
    if (this.graph) {
      this.graph.destroy();
      this.graph = null;
    }
    if (this.box.hidden) { return; }
    this.graph = new Dygraph(this.plot, this.rows, {
      ...optionsOf(this.panel, this.lines, this.page.choice),
      dateWindow: this.page.window,
      highlightCallback: (event, x) => this.page.point(x),
      unhighlightCallback: () => this.page.point(null),
      zoomCallback: (from, to) => this.page.zoom(this.graph.isZoomed("x") ? [from, to] : null),
      drawCallback: (graph, first) => { if (!first) { this.page.follow(graph); } },
      underlayCallback: (context, area, graph) => this.marks(context, area, graph),
    });
  }

  // What happened at a step, as lines there.
  marks(context, area, graph) {
    if (this.panel !== panels[0]) { return; }
    for (const run of this.page.runs) {
      const place = placeOf(run, this.page.choice.axis);
      for (const [step, what] of run.marks || []) {
        const x = graph.toDomXCoord(place(step));
        context.fillStyle = markColors[what];
        context.globalAlpha = 0.5;
        context.fillRect(x - 0.5, area.y, 1, area.h);
      }
    }
    context.globalAlpha = 1;
  }

  nearest(x) {
    let low = 0, high = this.rows.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.rows[middle][0] <= x) { low = middle; } else { high = middle; }
    }
    return x - this.rows[low][0] <= this.rows[high][0] - x ? low : high;
  }

  // The cursor of all charts is at x.
  show(x) {
    if (!this.graph) { return; }
    this.values.replaceChildren();
    if (x === null) {
      this.graph.clearSelection();
      return;
    }
    const row = this.nearest(x);
    this.row = row;
    this.graph.setSelection(row);
    this.values.append(this.page.choice.axis + " " + numberText(this.rows[row][0]));
    this.lines.forEach((line, i) => {
      const [least, value, most] = this.rows[row][i + 1];
      if (value === null || this.lines.length > 24) { return; }
      const text = this.panel.bytes ? sizeText(value) : numberText(value);
      const spread = least < most ? " (" + numberText(least) + " to " + numberText(most) + ")" : "";
      this.values.append(swatch(runColor(line.run)),
                         lineName(line, this.page.runs) + " " + text + spread);
    });
  }

  key(event) {
    const moves = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
    const zooms = {"+": 0.5, "=": 0.5, "-": 2};
    if (event.key in moves && this.graph) {
      const from = this.row === undefined ? -1 : this.row;
      const to = Math.min(this.rows.length - 1, Math.max(0, from + moves[event.key]));
      this.page.point(this.rows[to][0]);
    } else if (event.key in zooms && this.graph) {
      const [a, b] = this.graph.xAxisRange();
      const middle = this.row === undefined ? (a + b) / 2 : this.rows[this.row][0];
      const half = (b - a) / 2 * zooms[event.key];
      this.page.zoom([middle - half, middle + half]);
    } else if (event.key === "0") {
      this.page.zoom(null);
    } else {
      return;
    }
    event.preventDefault();
  }

  numbers() {
    const heads = [this.page.choice.axis, ...this.lines.flatMap((line) => {
      const name = lineName(line, this.page.runs);
      return line.series.least && !line.smooth ? [name, "least", "most"] : [name];
    })];
    return [heads, ...this.rows.map((row) => [numberText(row[0]),
      ...this.lines.flatMap((line, i) => {
        const [least, value, most] = row[i + 1];
        const all = line.series.least && !line.smooth ? [value, least, most] : [value];
        return all.map(numberText);
      })])];
  }
}

class Curves {
  constructor(runs, restored) {
    this.runs = runs;
    this.choice = {axis: "steps", log: false, keep: 0.9, ...(restored || {}).choice};
    this.window = (restored || {}).window || null;
    pageState.curves = {choice: this.choice, window: this.window};
    this.charts = panels
      .filter((panel) => runs.some((run) => panel.keys.concat(panel.dashed || [])
        .some((key) => run.series[key])))
      .map((panel) => new Chart(panel, this));
    document.getElementById("charts").append(...this.charts.map((chart) => chart.box));
    this.controls();
    this.draw();
    darkScheme.addEventListener("change", () => this.draw());
  }

  draw() {
    this.charts.forEach((chart) => chart.draw());
  }

  select(name, label, values, current, take) {
    const made = element("select", {id: name});
    for (const [value, text] of values) {
      made.append(element("option", {value, selected: value === current}, text));
    }
    made.addEventListener("change", () => {
      take(made.value);
      this.draw();
    });
    return element("label", {}, label + " ", made);
  }

  controls() {
    const known = Object.keys(axes).filter((axis) =>
      !axes[axis] || this.runs.every((run) => !run.series.loss || run.series[axes[axis]]));
    if (!known.includes(this.choice.axis)) { this.choice.axis = "steps"; }
    const all = element("button", {type: "button", id: "all"}, "show all");
    all.addEventListener("click", () => this.zoom(null));
    document.getElementById("controls").append(
      this.select("axis", "over", known.map((axis) => [axis, axis]), this.choice.axis,
                  (value) => {
                    this.choice.axis = value;
                    this.keepWindow(null);
                  }),
      this.select("scale", "scale", [["linear", "linear"], ["log", "logarithmic"]],
                  this.choice.log ? "log" : "linear",
                  (value) => { this.choice.log = value === "log"; }),
      this.select("smoothing", "smoothing", [["0", "none"], ["0.9", "0.9"], ["0.99", "0.99"]],
                  String(this.choice.keep), (value) => { this.choice.keep = Number(value); }),
      all);
  }

  point(x) {
    if (this.pointing) { return; }
    this.pointing = true;
    this.charts.forEach((chart) => chart.show(x));
    this.pointing = false;
  }

  keepWindow(part) {
    this.window = part;
    pageState.curves.window = part;
  }

  // All charts show the same part.
  zoom(part) {
    this.keepWindow(part);
    this.following = true;
    this.charts.forEach((chart) => {
      if (chart.graph) {
        chart.graph.updateOptions(part ? {dateWindow: part} : {dateWindow: null, valueRange: null});
      }
    });
    this.following = false;
  }

  // A chart has been panned.
  follow(graph) {
    const [from, to] = graph.xAxisRange();
    const same = this.window && Math.abs(this.window[0] - from) + Math.abs(this.window[1] - to) <
      1e-9 * (to - from);
    if (!this.following && graph.isZoomed("x") && !same) {
      this.zoom([from, to]);
    }
  }
}
