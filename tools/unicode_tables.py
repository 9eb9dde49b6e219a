#!/usr/bin/env python3
"""unicode_tables.py OUT.c: writes src/tokenizer/unicode_data.c.

Needs Hugging Face's `tokenizers` (PyPI). That library has several versions of Unicode in
it at once: its regular expressions have Unicode 16, numbers and lower case Unicode 17,
punctuation, controls and non-spacing marks of BERT about Unicode 8, normalization about
Unicode 11. No single version of the Unicode Character Database gives the same tokens on
every code point. So this script asks the library about every code point, and takes from
Python's unicodedata only what normalization keeps stable between versions: canonical
combining classes and which pairs may compose; each of them is confirmed by the library.
"""
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
EVERY = "".join(map(chr, CODES))
HANGUL = range(0xAC00, 0xAC00 + 11172)

# The order of the enum in src/tokenizer/unicode.h.
FLAGS = ["LETTER", "NUMBER", "MARK", "PUNCTUATION", "SYMBOL", "SPACE", "UPPER", "LOWER",
         "NUMERIC", "BERT_PUNCTUATION", "BERT_CONTROL", "BERT_MARK", "ACCENT",
         "BERT_SPACE", "WORD", "PUNCT"]


def removed_by(pre_tokenizer):
    left = set()
    for text, _ in pre_tokenizer.pre_tokenize_str(EVERY):
        left.update(map(ord, text))
    return set(CODES) - left


def regex(pattern):
    return removed_by(pre_tokenizers.Split(Regex(pattern), "removed"))


def splits(pre_tokenizer):
    return {c for c in CODES
            if len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a")) > 1}


def mapped(normalizer):
    return {c: normalizer.normalize_str(chr(c)) for c in CODES}


def bert(**on):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False,
               lowercase=False)
    return mapped(normalizers.BertNormalizer(**{**off, **on}))


def word():
    """What single_word of an added token takes for a letter of a word."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.add_tokens([AddedToken("xx", single_word=True)])
    return {c for c in CODES if "xx" not in tokenizer.encode("xx" + chr(c)).tokens}


def sets():
    clean = bert(clean_text=True)
    accents = bert(strip_accents=True)
    strip = mapped(normalizers.StripAccents())
    spaces = regex(r"\s")
    return {
        "LETTER": regex(r"\p{L}"), "NUMBER": regex(r"\p{N}"), "MARK": regex(r"\p{M}"),
        "PUNCTUATION": regex(r"\p{P}"), "SYMBOL": regex(r"\p{S}"), "SPACE": spaces,
        "UPPER": regex(r"[\p{Lu}\p{Lt}]"), "LOWER": regex(r"\p{Ll}"),
        "NUMERIC": splits(pre_tokenizers.Digits(individual_digits=True)),
        "BERT_PUNCTUATION": splits(pre_tokenizers.BertPreTokenizer()) - spaces,
        "BERT_CONTROL": {c for c in CODES if clean[c] == ""},
        "BERT_MARK": {c for c in CODES if accents[c] == ""},
        "ACCENT": {c for c in CODES if strip[c] == ""},
        "BERT_SPACE": {c for c in CODES if clean[c] == " "},
        "WORD": word(),
        "PUNCT": splits(pre_tokenizers.Punctuation()),
    }


def class_runs():
    flags = dict.fromkeys(CODES, 0)
    found = sets()
    for bit, name in enumerate(FLAGS):
        for c in found[name]:
            flags[c] |= 1 << bit
    runs, last = [], None
    for c in range(0x110000):
        value = flags.get(c, 0)
        if value != last:
            runs.append((c, value))
            last = value
    return runs


def lowercase():
    lower = mapped(normalizers.Lowercase())
    changed = {c: t for c, t in lower.items() if t != chr(c)}
    assert changed.pop(0x130) == "i\u0307"  # the only one of two, written in unicode.c
    assert all(len(t) == 1 for t in changed.values())
    return [(c, ord(t)) for c, t in changed.items()]


def decompositions():
    nfd, nfkd = mapped(normalizers.NFD()), mapped(normalizers.NFKD())
    entries, data = [], []
    for c in CODES:
        if c in HANGUL or nfkd[c] == chr(c):
            continue
        if nfd[c] != chr(c):
            entries.append((c, len(data), len(nfd[c]), 0))
            data += map(ord, nfd[c])
        if nfkd[c] != nfd[c]:
            entries.append((c, len(data), len(nfkd[c]), 1))
            data += map(ord, nfkd[c])
    return entries, data


def compositions():
    pairs, nfc = [], normalizers.NFC()
    for c in CODES:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            a, b = (int(part, 16) for part in parts)
            if nfc.normalize_str(chr(a) + chr(b)) == chr(c):
                pairs.append((a, b, c))
    return sorted(pairs)


def combining():
    nfd, runs, last = normalizers.NFD(), [], 0
    for c in CODES:
        value = unicodedata.combining(chr(c))
        iota = "a\u0345" + chr(c)  # class 240: before it goes all that is combining
        if value and c != 0x345 and nfd.normalize_str(iota) == iota:
            value = 0
        if value != last:
            runs.append((c, value))
            last = value
    return runs


def table(out, kind, name, numbers):
    out.append("const %s %s[] = {" % (kind, name))
    row = "   "
    for number in numbers:
        word = " 0x%x," % number
        if len(row) + len(word) > 88:
            out.append(row)
            row = "   "
        row += word
    out.append(row)
    out.append("};")
    out.append("const size_t %s_count = sizeof %s / sizeof *%s;" % (name, name, name))


def main():
    entries, data = decompositions()
    assert len(data) < 1 << 16 and max(entry[2] for entry in entries) < 32
    out = ["// Generated by tools/unicode_tables.py from tokenizers %s (PyPI) and the"
           % tokenizers.__version__,
           "// Unicode Character Database %s of Python: do not edit. Pairs and triples"
           % unicodedata.unidata_version,
           "// stand one after the other; unicode_data.h tells what they mean.",
           "// clang-format off",
           '#include "tokenizer/unicode_data.h"', ""]
    flat = lambda rows: [number for row in rows for number in row]
    table(out, "uint32_t", "tr__unicode_classes", flat(class_runs()))
    table(out, "uint32_t", "tr__unicode_lower", flat(lowercase()))
    table(out, "uint32_t", "tr__unicode_combining", flat(combining()))
    table(out, "uint32_t", "tr__unicode_compositions", flat(compositions()))
    table(out, "uint32_t", "tr__unicode_decompositions",
          flat((c, kind << 31 | count << 16 | at) for c, at, count, kind in entries))
    table(out, "uint32_t", "tr__unicode_decomposed", data)
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(out) + "\n")


main()
