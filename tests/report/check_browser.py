"""check_browser.py TRANCHE SOURCE FOLDER: pages of `tranche report` in headless Chromium.

Trains a small run, opens its page, and looks at what a reader meets: texts, points,
cursor, keys, zoom, switches, tables; light, dark and at 360 pixels. Nothing may stand on
the console, and nothing may be requested. Pictures stay in FOLDER. Exit status 77: there
is no Chromium.
"""

import json
import os
import re
import subprocess
import sys

import browser as chromium
import hostile

PROGRAM, SOURCE, FOLDER = (os.path.abspath(path) for path in sys.argv[1:4])
HOSTILE = "<img src=x onerror=document.title=1>"
READY = "document.documentElement?.dataset.ready === 'yes'"
RUN = {
    "model": {"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_head": 2,
              "n_positions": 16, "vocab_size": 256},
    "data": {"format": "bytes", "train": [os.path.join(SOURCE, "ARCHITECTURE.md")],
             "validation": 0.1},
    "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "steps": 20,
    "evaluation": {"every": 5}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
}


def tranche(*arguments):
    subprocess.run([PROGRAM, *arguments], cwd=FOLDER, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_page():
    with open(os.path.join(FOLDER, "run.json"), "w", encoding="utf-8") as to:
        json.dump(RUN, to)
    tranche("train", "run.json", "--resume", "never", "--out", "out", "--trace", "trace.json")
    tranche("report", "out", "--out", "page.html", "--trace", "trace.json", "--machine",
            os.path.join(SOURCE, "examples/machines/two-cores.json"))


def make_hostile():
    """Runs that others could hand over: markup, gaps, no numbers, one step, many."""
    lines = {
        HOSTILE: ['{"step": 1, "loss": 4}', "no JSON <b>", '{"step": 9, "loss": 2}'],
        "one": ['{"step": 1, "loss": 4}'],
        "gaps": ['{"step": %d, "loss": %s}' % (i, "null" if i % 3 else 5 / i)
                 for i in range(1, 60)],
        "huge": ['{"step": %d, "loss": 1e300, "lr": 1e-300}' % i for i in range(1, 5)],
    }
    for i in range(60):
        lines[f"run{i}"] = ['{"step": %d, "loss": %g}' % (s, i + 9 / s)
                            for s in range(1, 200)]
    for name, text in lines.items():
        os.makedirs(os.path.join(FOLDER, name), exist_ok=True)
        with open(os.path.join(FOLDER, name, "metrics.jsonl"), "w",
                  encoding="utf-8") as to:
            to.write("\n".join(text) + "\n")
    tranche("report", *lines, "--out", "hostile.html")


def check(good, what):
    if not good:
        raise SystemExit(f"check_browser: {what}")


def quiet(page):
    found = page.complaints()
    check(not found, f"the page complains: {found}")


def check_curves(page):
    points = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.chart')].map("
        "(c) => [c.dataset.chart, Number(c.dataset.points)]))")
    check(points.get("loss") == 20, f"points of the charts: {points}")
    check(points.get("rate") == 20 and "gradient norm" in points, f"charts: {points}")
    page.evaluate("document.querySelector('.plot').focus()")
    for _ in range(3):
        page.key("ArrowRight")
    said = page.evaluate("document.querySelector('.values').textContent")
    check(said.startswith("steps 3") and "loss" in said, f"at the cursor: {said!r}")
    others = page.evaluate("document.querySelectorAll('.values')[1].textContent")
    check(others.startswith("steps 3"), f"another chart's cursor: {others!r}")
    box = page.evaluate("(({x, y, width, height}) => [x, y, width, height])("
                        "document.querySelector('.plot').getBoundingClientRect())")
    page.move(box[0] + box[2] - 12, box[1] + box[3] / 2)
    said = page.evaluate("document.querySelector('.values').textContent")
    check(said.startswith("steps 20"), f"under the pointer: {said!r}")


def check_zoom(page):
    # What is written below the charts: all of it, a part, all again.
    seen = ("[...document.querySelectorAll('.plot')[1].querySelectorAll("
            "'.dygraph-axis-label-x')].map((e) => e.textContent).join(' ')")
    whole = page.evaluate(seen)
    page.evaluate("document.querySelector('.plot').focus()")
    page.key("+", "+")
    page.key("+", "+")
    part = page.evaluate(seen)
    check(part != whole, f"zooming changes another chart: {whole!r}")
    page.key("0", "0")
    check(page.evaluate(seen) == whole, "0 shows all again")


def choose(page, name, value):
    page.evaluate(f"(() => {{ const s = document.getElementById('{name}'); s.value = "
                  f"'{value}'; s.dispatchEvent(new Event('change')); }})()")


def check_switches(page):
    for axis, last in (("samples", "160"), ("tokens", "2560"), ("steps", "20")):
        choose(page, "axis", axis)
        page.evaluate("document.querySelector('.plot').focus()")
        page.key("End")
        said = page.evaluate("document.querySelector('.values').textContent")
        check(said.startswith(f"{axis} {last}"), f"over {axis}: {said!r}")
    choose(page, "axis", "seconds")
    choose(page, "scale", "log")
    choose(page, "smoothing", "0")
    choose(page, "axis", "steps")
    page.evaluate("document.querySelector('.chart button').click()")
    rows = page.evaluate("document.querySelectorAll('.chart table tr').length")
    check(rows == 21, f"rows of the table: {rows}")


def check_map(page):
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent)"
                         ".plans[0].spaces[0].buffers.length")
    page.evaluate("document.querySelectorAll('.map canvas')[1].focus()")
    said = set()
    for _ in range(data):
        page.key("ArrowRight")
        said.add(page.evaluate("document.querySelector('.about').textContent"))
    check(len(said) == data, f"{data} buffers, {len(said)} texts")
    wanted = r"saved of h\.1, micro-batch 2; activations; \d+ bytes .* at offset \d+; " \
             r"steps \d+ to \d+; written by forward h\.1, micro-batch 2 .*; last read " \
             r"by backward h\.1, micro-batch 2 "
    check(any(re.search(wanted, text) for text in said), f"what is said: {said}")
    colors = page.evaluate(
        "(() => { const c = document.querySelectorAll('.map canvas')[1], p = "
        "c.getContext('2d').getImageData(0, 0, c.width, c.height).data, s = new Set(); "
        "for (let i = 0; i < p.length; i += 4) { s.add(p[i] << 16 | p[i + 1] << 8 | "
        "p[i + 2]); } return s.size; })()")
    check(colors > 6, f"the map has {colors} colors")


def check_lanes(page):
    """Both timelines; keys go along a stream, to another one, and zoom."""
    about = "document.querySelector('.lanes .about').textContent"
    spans = page.evaluate("JSON.parse(document.getElementById('data').textContent)"
                          ".times[0].planned.spans.length")
    page.evaluate("document.querySelector('.lanes canvas').focus()")
    said = set()
    for _ in range(spans):
        page.key("ArrowRight")
        said.add(page.evaluate(about))
    check(any(text.startswith("planned, rank 0, compute: clear (step 0): ") and
              text.endswith("; on the critical path") for text in said), f"said: {said}")
    check(any("forward h.1, micro-batch 3 (step" in text for text in said), f"said: {said}")
    for _ in range(8):
        page.key("ArrowDown")
    check(page.evaluate(about).startswith("traced, rank 0, "), page.evaluate(about))
    picture = "document.querySelector('.lanes canvas').toDataURL()"
    before = page.evaluate(picture)
    page.key("+", "+")
    check(page.evaluate(picture) != before, "plus zooms")
    page.key("0", "0")
    check(page.evaluate(picture) == before, "0 shows all again")
    page.evaluate("document.querySelector('.lanes button').click()")
    rows = page.evaluate("document.querySelectorAll('.lanes table tr').length")
    check(rows > spans, f"{rows} rows of spans")


def luminance(color):
    parts = [int(n) / 255 for n in re.findall(r"\d+", color)[:3]]
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def check_contrast(page):
    """Text on its ground 4.5 to 1, lines of curves 3 to 1 (WCAG 2, AA)."""
    pairs = page.evaluate("""(() => {
        const back = (e) => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (c !== "rgba(0, 0, 0, 0)") { return c; } } return "rgb(255, 255, 255)"; };
        const found = [];
        for (const e of document.querySelectorAll("h1, h3, td, th, label, button, select," +
             ".warning, .dygraph-axis-label, caption, .values, footer p, .legend > span")) {
            found.push([e.className || e.tagName, getComputedStyle(e).color, back(e), 4.5]);
        }
        for (const e of document.querySelectorAll(".swatch")) {
            found.push(["swatch", getComputedStyle(e).backgroundColor,
                        back(e.parentElement), 3]);
        }
        return found; })()""")
    for what, color, ground, least in pairs:
        a, b = sorted((luminance(color), luminance(ground)))
        ratio = (b + 0.05) / (a + 0.05)
        check(ratio >= least, f"{what}: {color} on {ground} is {ratio:.2f}")


def check_looks(browser, name):
    for look, more in (("light", {}), ("dark", {"dark": True}),
                       ("phone", {"width": 360, "height": 800})):
        page = browser.open(os.path.join(FOLDER, name + ".html"), **more)
        page.wait(READY)
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        check(width[0] <= width[1], f"{look}: {width[0]} of {width[1]} pixels")
        check_contrast(page)
        page.picture(os.path.join(FOLDER, f"{name}-{look}.png"))
        quiet(page)


def write_run(name, metrics, settings):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    for file, text in (("metrics.jsonl", metrics), ("run.json", settings)):
        if text is not None:
            with open(os.path.join(folder, file), "wb") as to:
                to.write(text)


def looked_at(browser, other):
    """What the page of the run "good" beside another one is made of."""
    tranche("report", "good", other, "--out", "twenty.html")
    page = browser.open(os.path.join(FOLDER, "twenty.html"))
    page.wait(READY)
    page.evaluate("document.querySelectorAll('button').forEach((b) => b.click());"
                  "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    found = page.evaluate("""(() => {
        const all = [...document.querySelectorAll("*")];
        const rows = [...document.querySelectorAll(".chart table tr")].slice(1)
            .map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent));
        return {
            tags: [...new Set(all.map((e) => e.tagName))],
            attributes: [...new Set(all.flatMap((e) => e.getAttributeNames()))],
            runs: document.querySelectorAll("#runs li").length,
            sections: document.querySelectorAll("section").length,
            good: rows.filter((row) => Number(row[0]) <= 5 && row[1] !== "-").slice(0, 5),
            hacked: window.hacked || Object.prototype.hidden || null,
            title: document.title}; })()""")
    quiet(page)
    page.call("Page.close")
    return found


def check_twenty(browser):
    """No hostile run changes a node that is not its own."""
    write_run("good", hostile.steps(5, lambda s: 4.5 - s / 2), None)
    write_run("harmless", hostile.steps(9, more=', "skipped": true'), b'{"model": "x"}')
    usual = looked_at(browser, "harmless")
    check(len(usual["good"]) == 5, f"rows of the good run: {usual}")
    check(len(hostile.RUNS) == 20, "20 runs")
    for name, (metrics, settings) in hostile.RUNS.items():
        write_run(name, metrics, settings)
        seen = looked_at(browser, name)
        for what in ("runs", "good", "hacked", "title"):
            check(seen[what] == usual[what], f"{name!r}: {what}: {seen[what]!r}")
        for what in ("tags", "attributes"):
            check(set(seen[what]) <= set(usual[what]),
                  f"{name!r}: {what}: {set(seen[what]) - set(usual[what])}")
        check(seen["sections"] == usual["sections"], f"{name!r}: sections")


def check_reload(browser):
    """A page of a run that goes on: it loads itself again, as its reader has left it."""
    folder = os.path.join(FOLDER, "going")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as to:
        to.write('{"steps": 100}')

    def write(first, last, mode):
        with open(os.path.join(folder, "metrics.jsonl"), mode, encoding="utf-8") as to:
            to.writelines('{"step": %d, "loss": %g, "samples": %d}\n' % (s, 9 / s, 8 * s)
                          for s in range(first, last + 1))

    write(1, 20, "w")
    watch = subprocess.Popen([PROGRAM, "report", "going", "--watch", "--out", "going.html"],
                             cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    try:
        watch.stdout.readline()
        page = browser.open(os.path.join(FOLDER, "going.html"))
        page.wait(READY)
        choose(page, "axis", "samples")
        choose(page, "scale", "log")
        choose(page, "smoothing", "0.99")
        page.evaluate("document.querySelector('.chart button').click()")
        page.evaluate("document.querySelector('.plot').focus()")
        page.key("+", "+")
        seen = ("[...document.querySelectorAll('.plot')[0].querySelectorAll("
                "'.dygraph-axis-label-x')].map((e) => e.textContent).join(' ')")
        before = page.evaluate(seen)
        write(21, 30, "a")
        points = "document.querySelector('.chart')?.dataset.points"
        page.wait(f"{READY} && {points} === '30'")
        check(page.evaluate(seen) == before, f"the zoom stays: {before!r}")
        kept = page.evaluate("['axis', 'scale', 'smoothing'].map((n) => "
                             "document.getElementById(n).value).join(' ')")
        check(kept == "samples log 0.99", f"choices stay: {kept}")
        rows = page.evaluate("document.querySelectorAll('.chart table tr').length")
        check(rows == 31, f"the table stays open: {rows}")
        write(31, 100, "a")
        check(watch.wait(timeout=20) == 0, "watching ends with the run")
        page.wait(f"{READY} && {points} === '100'")
        check(page.evaluate("document.body.dataset.reload") is None, "reloads no more")
        quiet(page)
    finally:
        watch.kill()
        watch.wait()


def check_hostile(browser):
    page = browser.open(os.path.join(FOLDER, "hostile.html"))
    page.wait(READY)
    check(page.evaluate("document.querySelectorAll('img, b, i').length") == 0, "markup")
    check("img" in page.evaluate("document.title"), "the title is the run's name")
    check(page.evaluate("document.querySelectorAll('#runs li').length") == 64, "runs")
    # A second on a quiet machine; this one may have other work.
    ready = page.evaluate("performance.getEntriesByName('ready')[0].startTime")
    print(f"check_browser: a page of 64 runs is usable after {ready:.0f} ms")
    check(ready < 5000, f"usable after {ready} ms")
    page.evaluate("document.querySelector('.plot').focus()")
    page.key("ArrowRight")
    page.evaluate("document.querySelector('.chart button').click()")
    check(page.evaluate("document.querySelectorAll('img').length") == 0, "markup in a table")
    check(page.evaluate("document.querySelector('.chart th').nextSibling.textContent")
          .startswith(HOSTILE), "the table names the run")
    quiet(page)


def main():
    if not chromium.find():
        print("check_browser: skipped: there is no Chromium")
        raise SystemExit(77)
    os.makedirs(FOLDER, exist_ok=True)
    make_page()
    make_hostile()
    with open(os.path.join(FOLDER, "page.html"), encoding="utf-8") as page:
        if "id=\"charts\"" not in page.read():
            print("check_browser: skipped: the program was built without dygraphs")
            raise SystemExit(77)
    with chromium.Browser() as browser:
        page = browser.open(os.path.join(FOLDER, "page.html"))
        page.wait(READY)
        check("out - Tranche" == page.evaluate("document.title"), "title")
        check_curves(page)
        check_zoom(page)
        check_switches(page)
        check_map(page)
        check_lanes(page)
        quiet(page)
        check_looks(browser, "page")
        check_hostile(browser)
        check_twenty(browser)
        check_reload(browser)
    print("check_browser: the pages are as they should be")


main()
