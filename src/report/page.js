"use strict";
// What all parts of the page share. Text of others is only ever put in as text.

const runColors = [
  ["#1f6fd1", "#62a8f7"], ["#b94c05", "#f5955a"], ["#147a52", "#4fc793"],
  ["#b0306a", "#ec80b2"], ["#7a52c7", "#b597f2"], ["#7d6200", "#d6b84a"],
  ["#0b7783", "#4cc5d4"], ["#c0392b", "#f27d6e"],
];
const categoryColors = [
  ["#1f6fd1", "#62a8f7"], ["#0b7783", "#4cc5d4"], ["#b94c05", "#f5955a"],
  ["#7a52c7", "#b597f2"], ["#147a52", "#4fc793"], ["#b0306a", "#ec80b2"],
  ["#7d6200", "#d6b84a"], ["#c0392b", "#f27d6e"], ["#4d6b8a", "#8fb2d6"],
  ["#5c7a14", "#a9c95c"], ["#8a4a8f", "#d195d6"], ["#6b5a4b", "#c2ad9a"],
  ["#6e7781", "#9198a1"],
];

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");

function schemeColor(pair) {
  return pair[darkScheme.matches ? 1 : 0];
}

function runColor(run) {
  return schemeColor(runColors[run % runColors.length]);
}

function styleValue(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// An element with these properties and children; a text becomes a text.
function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties || {});
  made.append(...children);
  return made;
}

function swatch(color) {
  const made = element("span", {className: "swatch"});
  made.style.backgroundColor = color;
  return made;
}

function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    unit++;
  }
  return (unit === 0 ? String(bytes) : bytes.toFixed(2)) + " " + units[unit];
}

function numberText(value) {
  if (value === null || value === undefined || !isFinite(value)) {
    return "-";
  }
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) {
    return value.toExponential(3);
  }
  return String(Number(value.toPrecision(size >= 1e5 ? 12 : 5)));
}

// A button, and behind it a table that is made when it is first asked for.
// rows(): [[cell, ...], ...], the first of which are the heads of the columns.
const tableRowsMost = 2000;
function tableBehindButton(what, rows) {
  const place = element("div", {className: "scroll", hidden: true});
  const button = element("button", {type: "button"}, "numbers");
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-label", "numbers of " + what + " as a table");
  button.addEventListener("click", () => {
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", String(!place.hidden));
    if (!place.hidden) {
      place.replaceChildren(table(what, rows()));
    }
  });
  return [button, place];
}

function table(what, rows) {
  const made = element("table", {className: "numbers"}, element("caption", {}, what));
  made.append(element("tr", {}, ...rows[0].map((cell) => {
    const head = element("th", {}, cell);
    head.scope = "col";
    return head;
  })));
  for (const row of rows.slice(1, 1 + tableRowsMost)) {
    made.append(element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  }
  if (rows.length > 1 + tableRowsMost) {
    made.append(element("caption", {}, what + ": the first " + tableRowsMost + " of " +
                                       (rows.length - 1) + " rows"));
    made.firstChild.remove();
  }
  return made;
}

// A canvas of this height on the screen, empty, to be drawn on in its pixels there.
function prepareCanvas(canvas, height) {
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(canvas.clientWidth, 200);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return {context, width};
}

function readData() {
  return JSON.parse(document.getElementById("data").textContent);
}
