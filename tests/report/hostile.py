"""Runs that others could hand over: 20 of them, each with what could change a page that
it is shown in: {name of the folder: (bytes of metrics.jsonl, bytes of run.json or None)}.
"""

PAYLOAD = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"


def steps(count, value=lambda step: 3 + 1 / step, more=""):
    return "".join('{"step": %d, "loss": %s%s}\n' % (s, value(s), more)
                   for s in range(1, count + 1)).encode()


def settings(text):
    return ('{"model": "%s", "origins": {"model": "%s"}}' % (text, text)).encode()


RUNS = {
    "<script>window.hacked=1<!--": (steps(9), None),
    "\"><svg onload=window.hacked=1>": (steps(9), settings("</script><b>x")),
    "'onclick='window.hacked=1": (steps(9), settings("' onclick='window.hacked=1")),
    "javascript:window.hacked=1": (steps(9), settings("javascript:window.hacked=1")),
    "__proto__": (steps(9, more=', "__proto__": {"x": 1}'),
                  b'{"__proto__": {"hidden": true}, "constructor": 1}'),
    "constructor": (steps(9), b'{"toString": "x", "hasOwnProperty": 1}'),
    "&lt;b&gt;&#60;i&#62;": (steps(9), settings("&#60;i&#62;&amp;")),
    "\u202edrawkcab\u2066": (steps(9), settings("\u202e")),
    "no numbers": (steps(9, lambda s: "null" if s % 2 else "2"), None),
    "NaN": (steps(9, lambda s: "NaN" if s % 2 else "2"), None),
    "huge": (steps(9, lambda s: "1e308" if s % 2 else "-1e308"), None),
    "tiny": (steps(9, lambda s: "1e-320"), None),
    "one step": (steps(1), b"[]"),
    "far away": (b'{"step": 9007199254740993, "loss": 1}\n{"step": 1, "loss": 2}\n', b"{"),
    "gaps": (b"".join(b'{"step": %d, "loss": 2}\n' % (3 ** i) for i in range(20)), None),
    "backwards": (b"".join(b'{"step": %d, "loss": 2}\n' % (50 - i) for i in range(50)), None),
    "markup in lines": ((PAYLOAD + "\n").encode() * 20 + steps(3), settings(PAYLOAD
                        .replace('"', "'"))),
    "bytes": (b"\xff\xfe\x00{}\n\xef\xbb\xbf" + steps(3), b"\xff\xfe{"),
    "long lines": (b'{"step": 1, "loss": 1, "x": "' + b"y" * 70000 + b'"}\n' + steps(3),
                   settings("z" * 100000)),
    "many events": (steps(900, more=', "skipped": true, "spike": "loss"'), None),
}
