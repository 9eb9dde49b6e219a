#!/usr/bin/env python3
"""long_sentences.py [FILE...]: sentences of the documents that have over 35 words.

Prints file, first line, number of words and the sentence. Code in backquotes counts as
one word, a link as its text; tables, headings and indented examples are left out. Without
files: the documents, but for the reference that is made of the headers.
"""

import glob
import os
import re
import sys

WORDS_MOST = 35


def paragraphs(text):
    """Pairs of a first line's number and the paragraph that begins there."""
    found, lines, fenced = [], [], False
    for number, line in enumerate(text.split("\n") + [""], 1):
        fenced ^= line.lstrip().startswith("```")
        item = re.match(r"\s*([-*]|\d+\.)\s+", line)
        apart = fenced or not line.strip() or line.lstrip()[:1] in "|#" or \
            (line.startswith("    ") and not lines)
        if lines and (apart or item):
            found.append((lines[0][0], " ".join(part for _, part in lines)))
            lines = []
        if not apart:
            lines.append((number, line[item.end():] if item else line.strip()))
    return found


def sentences(paragraph):
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    plain = re.sub(r"`[^`]*`", lambda code: code.group().replace(" ", "\0"), plain)
    for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\"(])", plain):
        yield sentence


def main(files):
    if not files:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
        files = sorted(set(glob.glob("*.md") + glob.glob("docs/*.md") +
                           glob.glob("docs/internals/*.md")) -
                       {"docs/library-reference.md", "CHANGELOG.md"})
    count = 0
    for name in files:
        with open(name, encoding="utf-8") as file:
            for line, paragraph in paragraphs(file.read()):
                for sentence in sentences(paragraph):
                    words = len(sentence.split())
                    if words > WORDS_MOST:
                        count += 1
                        print(f"{name}:{line}: {words}: " + sentence.replace("\0", " "))
    print(f"{count} sentences have over {WORDS_MOST} words")


if __name__ == "__main__":
    main(sys.argv[1:])
