// What the page does when it has come.

(function start() {
  const data = readData(), restored = restoreState();
  const colorRuns = () => document.querySelectorAll("#runs .swatch").forEach((one) => {
    one.style.backgroundColor = runColor(Number(one.dataset.run));
  });
  colorRuns();
  darkScheme.addEventListener("change", colorRuns);
  if (document.getElementById("charts") && window.Dygraph) {
    // Its legend makes markup of names, and asks for styles that the page does not allow.
    Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);
    new Curves(data.runs, restored.curves);
  }
  for (const place of document.querySelectorAll(".lanes")) {
    new Lanes(place, data.times[Number(place.dataset.run)]);
  }
  for (const place of document.querySelectorAll(".map")) {
    const number = Number(place.dataset.run), of = data.plans[number];
    const plan = typeof of === "number" ? data.plans[of] : of;
    if (!plan) {
      place.append(element("p", {}, "A page has the maps of 8 different plans: for this one, " +
                                    "report on its run alone."));
      continue;
    }
    for (const space of plan.spaces.filter((one) => one.buffers.length > 0)) {
      const peak = data.runs[number].series["peak_bytes." + space.name];
      const box = element("div");
      place.append(box);
      new ArenaMap(box, plan, space, peak ? Math.max(...(peak.most || peak.y)) : 0);
    }
  }
  openAgain(restored.open || []);
  reloadLater();
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
})();
