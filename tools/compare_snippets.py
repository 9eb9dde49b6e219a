#!/usr/bin/env python3
"""compare_snippets.py [--count N] [--seed S] [--program FILE] [--only TEXT] [--verbose]

Draws N snippets of Jinja (20,000): expressions of values, attributes, methods, filters,
tests and operators, and statements around them. Renders each with Tranche and with jinja2
as transformers configures it. A snippet that Tranche refuses is no fault; another text
is, and so is a text where jinja2 refuses. Prints the shortest snippets of each fault,
with --verbose also what Tranche refuses most often. Ends with 1 where a text differs.

Needs transformers. The program is build/bench/templates.
"""
import argparse
import collections
import json
import logging
import os
import random
import re
import signal
import sys
import warnings

from compare_templates import ROOT, Program

VARIABLES = {
    "messages": [{"role": "system", "content": "Be brief."},
                 {"role": "user", "content": " Hé <b>'x'</b>\n"},
                 {"role": "assistant", "content": None, "n": 1}],
    "tools": None, "n": 7, "m": -3, "x": 2.5, "y": -0.5, "big": 1e22, "tiny": 1e-7,
    "long": 2**53 + 1, "yes": True, "no": False, "nothing": None, "empty": "",
    "s": "a,b,,c", "t": "one two\nThree", "w": "  ab \t", "u": "Éà漢🙂", "q": "it's \"q\"",
    "h": "<b>&</b>", "p": "%s and %d%%", "digits": "12", "number": " 1_000 ",
    "d": {"b": 2, "a": 1, "C": [3]}, "e": {}, "items": [3, 1, 2], "l": [], "texts": ["b", "A", "c"],
    "nested": [[1, 2], ["a", None], {"k": 0.5}], "loop2": 5,
}
TEXTS = ["''", "'a'", "'ab cd'", "'1'", "'inf'", "'nan'", "'1e3'", "'0x1f'", "'1_000'", "'-5'",
         "' 7 '", "'1.5'", "'.5'", "'5.'", "'٣'", "'²'", "'é'", "'ß'", "'Σ'", "'ǆ'", "'A'",
         "'aBc1'", "'a\\nb'", "'\\t'", "'a b'", "'%s'", "'%d items'", "'%5.2f|'", "'%-5s|'",
         "'%(a)s'", "'%r'", "'%x'", "'%%'", "'{} {}'", "'{0}'", "'{a}'", "'they\\'re bill\\'s'",
         "'x-y_z'", "'<a>'", "','", "'role'", "'on'", "'None'", "'infinity'", "'+3'", "'1__0'"]
NUMBERS = ["0", "1", "2", "3", "-1", "7", "10", "0.5", "1.5", "2.5", "-0.5", "1e3", "0.1", "100",
           "1234567", "2.675", "1e16", "True", "1_000", "0x1f", "0b11", "1e-5"]
OTHERS = ["none", "None", "[]", "{}", "()", "(1, 2)", "(1,)", "[1, 'a', none]", "{'a': 1, 'b': 'x'}",
          "[[1, 2], [3]]", "nope", "range(3)", "range(1, 8, 2)", "dict(a=1)", "namespace(a=1)",
          "[1, 2] + [3]", "['b', 'a', 'B']", "[1, 1.0, true]", "d.items()", "d.keys()", "loop",
          "d.values()", "range", "namespace", "caller", "self", "varargs", "cycler", "dict",
          "[{'a': 1}, {'a': 2}]", "('a', 'b')", "{1: 'x'}", "{'a': [1, {'b': 2}]}", "'a'.upper",
          "strftime_now", "raise_exception", "joiner(',')", "cycler(1, 2)", "lipsum", "h|safe", "'a'|safe",
          "'x'|e", "items|map('string')", "d|items"]
ATTRIBUTES = ["real", "imag", "numerator", "denominator", "start", "stop", "step", "name",
              "arguments", "a", "b", "nope", "role", "content", "index", "first", "last", "length",
              "mapping", "count", "__class__", "__len__", "_x", "keys", "items", "upper", "get",
              "index0", "changed", "append", "gi_frame", "args", "function", "update", "0", "1"]
METHODS = ["strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "startswith", "endswith",
           "removeprefix", "removesuffix", "find", "rfind", "index", "rindex", "count", "isdigit",
           "isalpha", "isalnum", "isnumeric", "isdecimal", "isspace", "isupper", "islower",
           "istitle", "isascii", "isidentifier", "isprintable", "replace", "join", "lower",
           "upper", "title", "capitalize", "swapcase", "casefold", "center", "ljust", "rjust",
           "zfill", "partition", "rpartition", "format", "expandtabs", "encode", "translate",
           "get", "items", "keys", "values", "copy", "fromkeys", "append", "pop", "update",
           "is_integer", "bit_length", "conjugate", "as_integer_ratio", "hex", "to_bytes",
           "cycle", "changed", "format_map", "isdisjoint", "setdefault", "sort", "bit_count"]
FILTERS = ["abs", "attr", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "e",
           "escape", "filesizeformat", "first", "float", "forceescape", "format", "groupby",
           "indent", "int", "items", "join", "last", "length", "list", "lower", "map", "max",
           "min", "pprint", "reject", "rejectattr", "replace", "reverse", "round", "safe",
           "select", "selectattr", "slice", "sort", "string", "striptags", "sum", "title", "tojson",
           "trim", "truncate", "unique", "upper", "urlencode", "wordcount", "wordwrap", "xmlattr"]
TESTS = ["boolean", "callable", "defined", "divisibleby", "eq", "equalto", "escaped", "even",
         "false", "filter", "float", "ge", "gt", "in", "integer", "iterable", "le", "lower", "lt",
         "mapping", "ne", "none", "number", "odd", "sameas", "sequence", "string", "test", "true",
         "undefined", "upper"]
NAMED = ["default", "reverse", "attribute", "sep", "maxsplit", "width", "precision", "method",
         "default_value", "boolean", "case_sensitive", "by", "indent", "first", "blank", "base",
         "start", "count", "chars", "keepends", "sort_keys", "ensure_ascii", "separators", "d"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in",
             "and", "or"]
HINTS = {"map": ["'upper'", "attribute='role'", "attribute='a', default='z'", "'int'", "'replace', 'a', 'b'",
                 "'length'", "'title'", "attribute='0'", "attribute=0"],
         "select": ["'string'", "'gt', 1", "'in', [1, 'a']", "'odd'", ""],
         "reject": ["'none'", "'equalto', 1", ""],
         "selectattr": ["'role', 'equalto', 'user'", "'a'", "'a', 'gt', 1", "'content', 'none'"],
         "rejectattr": ["'role', 'in', ['user']", "'a', 'defined'"],
         "round": ["", "1", "2", "0, 'ceil'", "1, 'floor'", "-1", "method='floor'", "precision=1", "3, 'common'"],
         "int": ["", "0", "5", "0, 16", "base=16", "default=3", "0, 8", "0, 2"],
         "float": ["", "1.5", "default=2"],
         "tojson": ["", "indent=2", "separators=(',', ':')", "ensure_ascii=true", "sort_keys=true", "indent=0", "indent='-'"],
         "join": ["", "','", "', ', attribute='role'", "'-', 'a'"],
         "sort": ["", "reverse=true", "attribute='a'", "case_sensitive=true", "true"],
         "default": ["'x'", "'x', true", "", "0"], "replace": ["'a', 'b'", "'', '-'", "'b', '', 1", "',', 1"],
         "indent": ["", "2", "2, true", "'> '", "1, blank=true", "width=3"],
         "dictsort": ["", "true", "by='value'", "reverse=true", "by='key'"],
         "split": ["", "','", "none, 1", "', ', 1", "sep=','", "maxsplit=1", "' '"],
         "rsplit": ["", "','", "none, 1", "',', 1"], "splitlines": ["", "true", "keepends=true"],
         "format": ["1, 2", "a=1", "'x'", "n, x", "d", ""], "join()": ["texts", "items", "d", "'abc'", "['a', 1]"],
         "center": ["9", "10, '*'"], "ljust": ["6", "6, '.'"], "rjust": ["6", "6, '.'"], "zfill": ["5", "2"],
         "get": ["'a'", "'z'", "'z', 1", "1"], "truncate": ["3", "5, true", "4, true, ''"],
         "find": ["'a'", "'b', 2", "'', 1", "'o', 1, 5"], "rfind": ["'a'", "'o'", "''", "'o', 1, 5"],
         "index": ["'a'", "'b'", "1"], "rindex": ["'a'", "'o'"], "count": ["'a'", "'o', 2", "1"],
         "startswith": ["'a'", "('a', 'o')", "'n', 1"], "endswith": ["'c'", "('c', 'e')", "'b', 0, 3"],
         "partition": ["','", "' '"], "rpartition": ["','", "' '"], "batch": ["2", "2, 'x'"],
         "slice": ["2", "2, 'x'"], "sum": ["", "start=1", "attribute='a'"], "cycle": ["1, 2"],
         "round()": [""], "divisibleby": ["2", "3"], "in": ["[1, 'a']", "'abc'", "d"], "sameas": ["none", "true"],
         "filter": [""], "strip": ["", "'a'", "' a'", "none"], "attr": ["'a'", "'role'"], "wordwrap": ["5"],
         "groupby": ["'a'"], "max": ["", "attribute='a'"], "min": ["", "case_sensitive=true"],
         "unique": ["", "true", "attribute='a'"], "expandtabs": ["", "4"], "center ": ["7"]}


class Draw:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def atom(self):
        kind = self.r.random()
        return self.r.choice(list(VARIABLES) if kind < .4 else TEXTS if kind < .65 else
                             NUMBERS if kind < .8 else OTHERS)

    def arguments(self, name, depth):
        hints = HINTS.get(name)
        if hints and self.r.random() < .75:
            return self.r.choice(hints)
        if self.r.random() < .5:
            return ""
        given = [self.expression(depth - 2) for _ in range(self.r.randint(1, 2))]
        if self.r.random() < .25:
            given[-1] = self.r.choice(NAMED) + "=" + given[-1]
        return ", ".join(given)

    def call(self, name, depth):
        inside = self.arguments(name, depth)
        return f"{name}({inside})" if inside or self.r.random() < .2 else name

    def inner(self, depth):
        text = self.expression(depth - 1)
        return text if re.fullmatch(r"[\w.]+|'[^']*'", text) and not text[0].isdigit() else f"({text})"

    def index(self, depth):
        r = self.r
        if r.random() < .4:
            return ":".join(r.choice(["", "0", "1", "-1", "2", "-2", "n"]) for _ in range(r.randint(2, 3)))
        return r.choice(["0", "1", "-1", "9", "'a'", "'role'", "'upper'", "'keys'", "true", "1.0", "n", "none", "(1, 2)"])

    def expression(self, depth):
        r = self.r
        kind = r.random()
        if depth <= 0 or kind < .12:
            return self.atom()
        if kind < .32:
            return f"{self.inner(depth)}|{self.call(r.choice(FILTERS), depth)}"
        if kind < .54:
            method = r.choice(METHODS)
            return f"{self.inner(depth)}.{method}({self.arguments(method, depth)})"
        if kind < .60:
            return f"{self.inner(depth)}.{r.choice(ATTRIBUTES)}"
        if kind < .67:
            return f"{self.inner(depth)}[{self.index(depth)}]"
        if kind < .75:
            return f"{self.inner(depth)} is {r.choice(['', '', 'not '])}{self.call(r.choice(TESTS), depth)}"
        if kind < .92:
            return f"{self.inner(depth)} {r.choice(OPERATORS)} {self.inner(depth)}"
        if kind < .94:
            return f"{r.choice(['-', 'not ', '+'])}{self.inner(depth)}"
        if kind < .96:
            return f"{self.inner(depth)} if {self.inner(depth)} else {self.inner(depth)}"
        if kind < .98:
            return f"[{self.expression(depth - 1)}, {self.expression(depth - 1)}]"
        return f"{{'k': {self.expression(depth - 1)}}}"

    def statement(self):
        r, e = self.r, lambda: self.expression(r.choice([0, 1, 1, 2]))
        name = r.choice(["v", "n", "loop", "s", "range", "dict", "self", "items", "true", "none"])
        forms = [
            lambda: f"{{% set {name} = {e()} %}}{{{{ {name} }}}}",
            lambda: f"{{% for {name} in {e()} %}}[{{{{ {name} }}}}{{{{ loop.index }}}}]{{% endfor %}}{{{{ {name} }}}}",
            lambda: f"{{% for a, b in {e()} %}}{{{{ a }}}}{{{{ b }}}}{{{{ {e()} }}}}{{% endfor %}}",
            lambda: f"{{% for v in {e()} if {e()} %}}{{{{ v }}}}{{{{ loop.{r.choice(ATTRIBUTES + ['previtem', 'nextitem', 'revindex', 'depth'])} }}}}{{% else %}}no{{% endfor %}}",
            lambda: f"{{% if {e()} %}}a{{% elif {e()} %}}b{{% else %}}c{{% endif %}}",
            lambda: f"{{% macro f(a, b={e()}) %}}{{{{ a }}}}{{{{ b }}}}{{{{ {r.choice(['varargs', 'kwargs', 'caller', 'f', 'loop', 'n'])} }}}}{{% endmacro %}}{{{{ f({e()}) }}}}",
            lambda: f"{{% set ns = namespace(a={e()}) %}}{{% set ns.{r.choice(['a', 'b'])} = {e()} %}}{{{{ ns.a }}}}{{{{ ns.b }}}}",
            lambda: f"{{% set {name} %}}x{{{{ {e()} }}}}{{% endset %}}{{{{ {name}|length }}}}",
            lambda: f"{{% for v in items %}}{{% set {name} = v %}}{{{{ {name} }}}}{{% endfor %}}{{{{ {name} }}}}",
            lambda: f"{{% set a, b = {e()} %}}{{{{ a }}}}{{{{ b }}}}",
            lambda: f"{{% filter {self.call(r.choice(FILTERS), 1)} %}} a {{{{ {e()} }}}}{{% endfilter %}}",
            lambda: f"{{% for v in {e()} %}}{{% if loop.first %}}{{% continue %}}{{% endif %}}{{{{ {e()} }}}}{{% break %}}{{% endfor %}}",
            lambda: f"{{% with v = {e()} %}}{{{{ v }}}}{{% endwith %}}",
            lambda: f"{{% for v in items %}}{{% for c in 'ab' %}}{{{{ loop.index }}}}{{% endfor %}}{{{{ loop.{r.choice(ATTRIBUTES)} }}}}{{% endfor %}}",
        ]
        return r.choice(forms)()

    def snippet(self):
        if self.r.random() < .25:
            return self.statement()
        return "{{ " + self.expression(self.r.choice([1, 1, 2, 2, 3])) + " }}"


class Slow(Exception):
    pass


def alarm(_signal, _frame):
    raise Slow()


def by_jinja2(utils, text):
    signal.setitimer(signal.ITIMER_REAL, 2)
    try:
        compiled = getattr(utils, "_cached_compile_jinja_template", utils._compile_jinja_template)
        return {"text": compiled(text).render(**VARIABLES)}
    except Slow:
        return None
    except Exception as problem:  # whatever a snippet does
        return {"error": f"{type(problem).__name__}: {problem}"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def kind_of(wanted, got):
    if "error" in got:
        return "both refuse" if "error" in wanted else "refused"
    if "error" in wanted:
        return "accepted"
    return "equal" if wanted["text"] == got["text"] else "different"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bench/templates"))
    parser.add_argument("--only", default="", help="only snippets with this text")
    parser.add_argument("--show", type=int, default=40, help="snippets of each fault")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from transformers.utils import chat_template_utils as utils
    signal.signal(signal.SIGALRM, alarm)
    program, draw = Program(options.program), Draw(options.seed)
    counts, faults, refused = collections.Counter(), collections.defaultdict(list), collections.Counter()
    for _ in range(options.count):
        text = draw.snippet()
        if options.only not in text:
            continue
        wanted = by_jinja2(utils, text)
        if wanted is None:
            continue
        got = program.render("snippet", VARIABLES, text)
        kind = kind_of(wanted, got)
        counts[kind] += 1
        if kind in ("different", "accepted"):
            faults[kind].append((len(text), text, wanted, got))
        if kind == "refused":
            refused[re.sub(r"'[^']*'|\d+", "#", got["error"].split(": ", 1)[-1])] += 1
    for kind, found in faults.items():
        for _, text, wanted, got in sorted(found, key=lambda f: f[:2])[:options.show]:
            print(f"{kind}: {text}\n    jinja2 {json.dumps(wanted, ensure_ascii=False)[:160]}"
                  f"\n    tranche {json.dumps(got, ensure_ascii=False)[:160]}")
    if options.verbose:
        for message, count in refused.most_common(50):
            print(f"{count:6} refused: {message}")
    print(f"snippets: {dict(counts)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
