#!/usr/bin/env python3
"""tokenizer.py FILES MEGABYTES: compares build/bench/tokenizer with Hugging Face's
`tokenizers` on every tokenizer.json in the folder FILES, token for token, and prints a
table: a row for each tokenizer and kind of text, with the documents that differ and the
MB/s of both: one thread each, by the processor's time, so that other processes weigh
little.

The texts are drawn from this machine, the same at each run of one seed: prose (HTML and
text files without their tags), code, translations (.mo files: many scripts), and wild:
runs of blanks, emoji, special tokens written in the text, code points drawn from all,
and bytes that are no UTF-8. MEGABYTES are shared among the four.
"""
import array
import gettext
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

import tokenizers

PROGRAM = "build/bench/tokenizer"
KINDS = ["prose", "code", "translations", "wild"]
DOCUMENT = 20000  # bytes of a document, at most


def files(suffixes):
    found = []
    for root in ("/usr", os.path.expanduser("~/.rustup"), "/opt"):
        for folder, _, names in os.walk(root):
            found += [os.path.join(folder, n) for n in names if n.endswith(suffixes)]
    found.sort()
    random.Random(1).shuffle(found)
    return found


def read(path):
    try:
        return pathlib.Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def prose():
    for path in files((".html", ".txt", ".md", ".rst")):
        text = read(path)
        if path.endswith(".html"):
            text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", "", text)
        yield text


def code():
    for path in files((".c", ".h", ".py", ".rs", ".js", ".css", ".pl", ".sh")):
        yield read(path)


def translations():
    for path in files((".mo",)):
        try:
            with open(path, "rb") as file:
                catalog = gettext.GNUTranslations(file)._catalog
        except (OSError, ValueError, IndexError, struct.error):
            continue
        yield "\n".join(t for t in catalog.values() if isinstance(t, str))


def wild_piece(draw, words, special):
    kind = draw.randrange(12)
    if kind == 0:
        return draw.choice(" \t\n\r\u00a0\u3000\u2028\x0b\x85") * draw.randrange(1, 60)
    if kind == 1:
        return "".join(draw.choice("👍🏽👩‍👩‍👧‍👦🇩🇪❤️😀🫠✨") for _ in range(draw.randrange(1, 8)))
    if kind == 2:
        return draw.choice(special)
    if kind == 3:
        return "".join(chr(draw.choice((draw.randrange(0xd800), draw.randrange(0xe000,
                       0x110000)))) for _ in range(draw.randrange(1, 20)))
    if kind == 4:
        return "a\u0301\u0323\u1100\u1161\u11a8\u0f71\u0f72"[draw.randrange(9):] * 3
    if kind == 5:
        return str(draw.randrange(10 ** draw.randrange(1, 12)))
    if kind == 6:
        return draw.choice(["'s", "'RE", "'ſ", "n't", "I'll", "'t'", "''", "'VE"])
    if kind == 7:
        return draw.choice("!?.,;:()[]{}<>-_=+*&^%$#@~`|\\/\"'") * draw.randrange(1, 40)
    if kind == 8:
        return bytes(draw.randrange(256) for _ in range(8)).decode("utf-8", "replace")
    if kind == 9:
        return "".join(draw.choice("漢字仮名交じり文ひらがなカタカナ한국어ไทย") for _ in range(30))
    return draw.choice(words)


def wild(special):
    draw = random.Random(2)
    words = read("/usr/share/common-licenses/GPL-3").split() or ["word"]
    while True:
        yield "".join(wild_piece(draw, words, special) + draw.choice(["", " ", "  "])
                      for _ in range(draw.randrange(1, 1000)))


def documents(kind, size, special, known={}):
    """Drawn once, but for the wild ones, in which each tokenizer has its own tokens."""
    if kind not in known or kind == "wild":
        known[kind] = draw_documents(kind, size, special)
    return known[kind]


def draw_documents(kind, size, special):
    texts = wild(special) if kind == "wild" else globals()[kind]()
    total, out = 0, []
    for text in texts:
        text = text.encode("utf-8", "replace").replace(b"\0", b"")[:DOCUMENT]
        text = text.decode("utf-8", "ignore")
        if text:
            out.append(text)
            total += len(text.encode())
        if total >= size:
            break
    return out


def ours(tokenizer, texts, folder):
    """The ids of each text, and MB/s."""
    data, path = os.path.join(folder, "documents"), os.path.join(folder, "ids")
    with open(data, "wb") as file:
        for text in texts:
            file.write(text.encode() + b"\0")
    done = subprocess.run([PROGRAM, tokenizer, data, path], capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s: %s" % (tokenizer, done.stderr))
    size, _, seconds = done.stdout.split()
    ids = array.array("i", pathlib.Path(path).read_bytes())
    ends = [i for i, token in enumerate(ids) if token < 0]
    rows = [ids[a:b] for a, b in zip([0] + [end + 1 for end in ends], ends)]
    return rows, int(size) / float(seconds) / 1e6


class Theirs:
    def __init__(self, path):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.seconds = 0
        self.tokens = 0

    def encode(self, text):
        begin = time.process_time()
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        self.seconds += time.process_time() - begin
        ids = array.array("i", encoding.ids)
        self.tokens += len(ids)
        return ids


def show_difference(text, a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    print("    from token %d: ours %s, theirs %s, of %r" % (
        at, list(a[at:at + 6]), list(b[at:at + 6]), text[:60]))


def compare(path, kind, size, folder):
    theirs = Theirs(path)
    special = [t.content for t in theirs.tokenizer.get_added_tokens_decoder().values()]
    texts = documents(kind, size, special or ["<s>"])
    mine, speed = ours(str(path), texts, folder)
    wrong, total = 0, sum(len(t.encode()) for t in texts)
    for text, row in zip(texts, mine, strict=True):
        ids = theirs.encode(text)
        if ids != row:
            wrong += 1
            if wrong < 4:
                show_difference(text, row, ids)
    hf_speed = total / theirs.seconds / 1e6
    print("| %-24s | %-12s | %6.1f | %9d | %6d | %6.1f | %6.2f | %5.1f |" % (
        path.stem[:24], kind, total / 1e6, theirs.tokens, wrong, speed, hf_speed,
        speed / hf_speed), flush=True)
    return wrong


def every_code_point(path, folder):
    """Each code point alone, between letters, and behind a blank."""
    theirs = Theirs(path)
    points = [c for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
    texts = []
    for step in range(0, len(points), 64):
        part = [chr(c) for c in points[step:step + 64]]
        texts += ["".join("a%sb %s %s1 '%s" % (c, c, c, c) for c in part), "x\n".join(part)]
    mine, _ = ours(str(path), texts, folder)
    wrong = [i for i, text in enumerate(texts) if mine[i] != theirs.encode(text)]
    print("    %s: every code point: %d of %d texts differ%s" % (
        path.stem, len(wrong), len(texts), "".join(
            "; around U+%04X" % points[i // 2 * 64] for i in wrong[:8])), flush=True)
    return len(wrong)


def main():
    folder, size = pathlib.Path(sys.argv[1]), float(sys.argv[2]) * 1e6 / len(KINDS)
    names = sys.argv[3:]
    paths = [p for p in sorted(folder.glob("*.json")) if not names or p.stem in names]
    print("tokenizers %s; load %.1f" % (tokenizers.__version__, os.getloadavg()[0]))
    print("| tokenizer | text | MB | tokens | differ | MB/s | theirs | times |")
    print("|---|---|---|---|---|---|---|---|")
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in paths:
            bad += sum(compare(path, kind, size, scratch) for kind in KINDS)
            bad += every_code_point(path, scratch)
    print("load %.1f; %d differences" % (os.getloadavg()[0], bad))
    sys.exit(1 if bad else 0)


main()
