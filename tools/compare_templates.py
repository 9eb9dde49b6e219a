#!/usr/bin/env python3
"""compare_templates.py PATH... [--count N] [--seed S] [--program FILE] [--verbose]

Renders chat templates (files, or folders of *.jinja) with Tranche and with jinja2 as
transformers configures it, on N drawn conversations each (200): with and without a
system message, tools, calls of tools and their results, reasoning, content in parts,
blanks at the ends, several languages. Both have to give the same text, and the same
spans of {% generation %}; or both have to refuse. Prints a line for each template that
is not equal throughout, and the counts. Ends with 1 where a text differs.

Needs transformers. The program is build/bench/templates.
"""
import argparse
import collections
import copy
import glob
import json
import logging
import os
import random
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
          "unk_token": "<unk>"}
WORDS = ("the a of Weather in Paris? 12.5 <b>bold</b> \"quoted\" it's naïve 漢字 🙂 "
         "tab\t line\nbreak {braces} [list] back\\slash & and <|im_end|> \n\n "
         "<think> </think> 'single' é").split(" ")


# ---- conversations


def text(r, most=12):
    words = " ".join(r.choice(WORDS) for _ in range(r.randint(0, most)))
    return r.choice(["", "", " ", "\n"]) + words + r.choice(["", "", " ", "\n"])


def value(r, depth=0):
    kinds = ["text", "int", "float", "bool", "none"] + (["list", "dict"] if depth < 2 else [])
    kind = r.choice(kinds)
    if kind == "text":
        return text(r, 4)
    if kind == "int":
        return r.choice([0, 1, -7, 42, 10**12])
    if kind == "float":
        return r.choice([0.5, -1.0, 1e-7, 1e22, 3.141592653589793, 100.0])
    if kind == "bool":
        return r.random() < 0.5
    if kind == "none":
        return None
    if kind == "list":
        return [value(r, depth + 1) for _ in range(r.randint(0, 3))]
    return {r.choice("abcxyz") + str(i): value(r, depth + 1) for i in range(r.randint(0, 3))}


def schema(r, depth=0):
    kind = r.choice(["string", "integer", "number", "boolean", "array", "object"])
    out = {"type": kind}
    if r.random() < 0.7:
        out["description"] = text(r, 5)
    if kind == "string" and r.random() < 0.3:
        out["enum"] = ["a", "b c", "d\"e"]
    if kind == "array":
        out["items"] = schema(r, depth + 1) if depth < 2 else {"type": "string"}
    if kind == "object":
        names = ["alpha", "beta"][: r.randint(0, 2)]
        out["properties"] = {n: schema(r, depth + 1) if depth < 2 else {"type": "string"}
                             for n in names}
        if r.random() < 0.5:
            out["required"] = names[:1]
    return out


def tool(r, index):
    names = ["city", "unit", "when"][: r.randint(0, 3)]
    parameters = {"type": "object", "properties": {n: schema(r) for n in names}}
    if r.random() < 0.7:
        parameters["required"] = names[:1]
    function = {"name": f"get_{index}", "description": text(r, 6), "parameters": parameters}
    if r.random() < 0.2:
        function["return"] = {"type": "string", "description": "what it finds"}
    return {"type": "function", "function": function}


def content(r, parts):
    if parts and r.random() < 0.4:
        return [{"type": "text", "text": text(r)} for _ in range(r.randint(1, 2))]
    return text(r)


def calls(r, tools):
    made = []
    for i in range(r.randint(1, 2)):
        name = r.choice(tools)["function"]["name"] if tools else "f"
        arguments = {k: value(r) for k in ["city", "n"][: r.randint(0, 2)]}
        if r.random() < 0.15:
            arguments = json.dumps(arguments)
        made.append({"id": f"call{r.randint(0, 99999):05d}"[:9].ljust(9, "x"),
                     "type": "function",
                     "function": {"name": name, "arguments": arguments}})
    return made


def turn(r, tools, parts):
    """An assistant's message, with the results of the tools that it calls."""
    message = {"role": "assistant", "content": content(r, parts)}
    if r.random() < 0.3:
        message["reasoning_content"] = text(r)
    if r.random() < 0.1:
        message["content"] = "<think>" + text(r) + "</think>" + text(r)
    out = [message]
    if tools and r.random() < 0.5:
        message["tool_calls"] = calls(r, tools)
        if r.random() < 0.5:
            message["content"] = r.choice(["", None])
        for call in message["tool_calls"]:
            result = text(r) if r.random() < 0.8 else json.dumps(value(r))
            answer = {"role": "tool", "content": result}
            if r.random() < 0.8:
                answer["tool_call_id"] = call["id"]
                answer["name"] = call["function"]["name"]
            out.append(answer)
        if r.random() < 0.8:
            out.append({"role": "assistant", "content": content(r, parts)})
    return out


def conversation(r):
    tools = [tool(r, i) for i in range(r.randint(1, 2))] if r.random() < 0.4 else None
    parts = r.random() < 0.15
    messages = []
    if r.random() < 0.5:
        messages.append({"role": r.choice(["system"] * 5 + ["developer"]),
                         "content": content(r, parts)})
    for _ in range(r.randint(1, 3)):
        messages.append({"role": "user", "content": content(r, parts)})
        messages += turn(r, tools, parts)
    if r.random() < 0.4:
        messages.append({"role": "user", "content": text(r)})
    variables = {"messages": messages, "tools": tools, "documents": None,
                 "add_generation_prompt": r.random() < 0.5, **TOKENS}
    if r.random() < 0.3:
        variables["enable_thinking"] = r.random() < 0.5
    if r.random() < 0.1:
        variables |= {"functions": text(r), "datetime": "2026-11-22"}
    if r.random() < 0.1:
        variables["documents"] = [{"title": text(r, 3), "text": text(r)}]
    return variables


# ---- the two


def by_jinja2(path, variables):
    from transformers.utils import chat_template_utils as utils
    variables = copy.deepcopy(variables)
    try:
        with open(path, encoding="utf-8") as file:
            template = utils._compile_jinja_template(file.read())
        tracked = {k: v for k, v in variables.items()}
        rendered, spans = utils._render_with_assistant_indices(
            template, tracked.pop("messages"), tracked.pop("tools"),
            tracked.pop("documents"), tracked.pop("add_generation_prompt"), **tracked)
    except Exception as problem:  # whatever a template does
        return {"error": f"{type(problem).__name__}: {problem}"}
    ends = [[len(rendered[:a].encode()), len(rendered[:b].encode())] for a, b in spans]
    return {"text": rendered, "spans": ends}


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def render(self, path, variables, *text):
        line = json.dumps([path, variables, *text], ensure_ascii=False) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{path}: the program ended")
        return json.loads(answer)


def compare(program, path, count, seed):
    """Counts, and the first case of each kind that is not "equal"."""
    counts, first = collections.Counter(), {}
    for i in range(count):
        variables = conversation(random.Random(f"{seed}/{i}"))
        wanted, got = by_jinja2(path, variables), program.render(path, variables)
        kind = ("equal" if wanted == got else
                "both refuse" if "error" in wanted and "error" in got else
                "refused" if "error" in got else
                "accepted" if "error" in wanted else "different")
        counts[kind] += 1
        first.setdefault(kind, (i, wanted, got))
    return counts, first


def difference(wanted, got):
    a, b = wanted.get("text", ""), got.get("text", "")
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: {a[at - 30 if at > 30 else 0:at + 30]!r} | {b[at - 30 if at > 30 else 0:at + 30]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bench/templates"))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    files = [f for p in options.paths for f in
             (sorted(glob.glob(os.path.join(p, "*.jinja"))) if os.path.isdir(p) else [p])]
    program = Program(options.program)
    totals, templates = collections.Counter(), collections.Counter()
    for path in files:
        counts, first = compare(program, path, options.count, options.seed)
        totals += counts
        bad = [k for k in ("different", "accepted", "refused") if counts[k]]
        templates[bad[0] if bad else "equal" if counts["equal"] else "never rendered"] += 1
        if bad or options.verbose:
            print(f"{os.path.basename(path)}: {dict(counts)}")
        for kind in bad + (["both refuse"] if options.verbose and "both refuse" in first else []):
            i, wanted, got = first[kind]
            print(f"    {kind}, conversation {i}: "
                  + (difference(wanted, got) if kind == "different" else
                     f"jinja2: {wanted.get('error', '')[:150]} | tranche: {got.get('error', '')[:200]}"))
    print(f"templates: {dict(templates)}; conversations: {dict(totals)}")
    return 1 if totals["different"] or totals["accepted"] else 0


if __name__ == "__main__":
    sys.exit(main())
