"""Writes pairs of texts that belong together, of the docstrings of Python files:

    python3 bench/pairs.py TRAIN.jsonl VALIDATION.jsonl COUNT SHARE FOLDER...

The anchor is the first sentence of a docstring, the positive its second. COUNT pairs are
drawn of all that the folders have, and of these SHARE (1,000) for validation; no text is
in two pairs.
"""
import ast
import json
import pathlib
import random
import re
import sys
import warnings


def docstrings(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield ast.get_docstring(node) or ""


def pair_of(text):
    prose = re.split(r"\n\s*[:>@`-]|\n\w+:?\n|\n\s*\w+:", text)[0]
    sentences = re.findall(r"[A-Z][^.!?]{25,200}[.!?](?=\s|$)", " ".join(prose.split()))
    return tuple(sentences[:2]) if len(sentences) > 1 else None


def main(train, validation, count, share, *folders):
    seen, pairs = set(), []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.py")):
            for pair in filter(None, map(pair_of, docstrings(path))):
                if not seen & set(pair):
                    seen |= set(pair)
                    pairs.append({"anchor": pair[0], "positive": pair[1]})
    random.Random(1).shuffle(pairs)
    pairs, share = pairs[:int(count)], int(share)
    print(f"{len(pairs)} pairs, {share} of them for validation")
    for name, part in ((validation, pairs[:share]), (train, pairs[share:])):
        pathlib.Path(name).write_text("".join(json.dumps(p) + "\n" for p in part))


if __name__ == "__main__":
    main(*sys.argv[1:])
