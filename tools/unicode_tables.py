#!/usr/bin/env python3
"""unicode_tables.py OUT.c: writes src/text/unicode/unicode_data.c.

Needs Hugging Face's `tokenizers`. That library has several versions of Unicode in
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

# The order of the enum in src/text/unicode/unicode.h.
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


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def packed(numbers):
    """Digits of 5 bits, the lowest first; the sixth bit says that another one follows."""
    text = ""
    for number in numbers:
        while number > 31:
            text += DIGITS[32 + number % 32]
            number //= 32
        text += DIGITS[number]
    return text


def signed(number):
    return 2 * number if number >= 0 else -2 * number - 1


def pack_pairs(pairs):
    """Pairs whose second number is small, by the distances of their first ones."""
    numbers, last = [2 * len(pairs)], 0
    for first, second in pairs:
        numbers += [first - last, second]
        last = first
    return packed(numbers)


def pack_classes(runs):
    """The flags that occur, the most frequent first, then runs that name them."""
    values = [value for _, value in runs]
    kinds = sorted(set(values), key=lambda value: (-values.count(value), value))
    return (packed([len(kinds)] + kinds) +
            pack_pairs([(c, kinds.index(value)) for c, value in runs]))


def pack_lower(pairs):
    """Series: as many letters, each 1 or 2 behind the one before, as have their lower
    case equally far away."""
    numbers, last, i = [2 * len(pairs)], 0, 0
    while i < len(pairs):
        first, lower = pairs[i]
        lengths = {}
        for step in 1, 2:
            length = 1
            while (i + length < len(pairs) and pairs[i + length] ==
                   (first + length * step, lower + length * step)):
                length += 1
            lengths[step] = length
        step = 1 if lengths[1] >= lengths[2] else 2
        length = lengths[step]
        numbers += [first - last, 2 * length + step - 1, signed(lower - first)]
        last = pairs[i + length - 1][0]
        i += length
    return packed(numbers)


def pack_compositions(triples):
    numbers, last = [3 * len(triples)], (0, 0, 0)
    for row in triples:
        numbers += [row[0] - last[0], signed(row[1] - last[1]), signed(row[2] - last[2])]
        last = row
    return packed(numbers)


def pack_decompositions(entries, data):
    """Series of characters that follow each other and whose decompositions differ by 1 in
    their last character, the kind being the same: what they have in common, then how
    long the series is, where that is more than 1."""
    rows = [(c, kind, data[at:at + count]) for c, at, count, kind in entries]
    numbers, i, last, last_part = [2 * len(rows), len(data)], 0, 0, 0
    while i < len(rows):
        c, kind, parts = rows[i]
        length = 1
        while (i + length < len(rows) and rows[i + length] ==
               (c + length, kind, parts[:-1] + [parts[-1] + length])):
            length += 1
        numbers += [4 * (len(parts) - 1) + 2 * kind + (length > 1), c - last]
        numbers += [length] if length > 1 else []
        for part in parts:
            numbers.append(signed(part - last_part))
            last_part = part
        last_part += length - 1
        last = c + length - 1
        i += length
    return packed(numbers)


def table(out, name, text):
    out.append("const char tr__unicode_%s[] =" % name)
    lines = [text[i:i + 82] for i in range(0, len(text), 82)]
    out += ['    "%s"' % line for line in lines[:-1]] + ['    "%s";' % lines[-1]]


def write(path, versions, classes, lower, combining, compositions, decompositions):
    out = ["// Generated by tools/unicode_tables.py from tokenizers %s and Python's" %
           versions[0],
           "// Unicode Character Database %s: do not edit." % versions[1],
           "// clang-format off",
           '#include "text/unicode/unicode_data.h"', ""]
    table(out, "classes", pack_classes(classes))
    table(out, "lower", pack_lower(lower))
    table(out, "combining", pack_pairs(combining))
    table(out, "compositions", pack_compositions(compositions))
    table(out, "decompositions", pack_decompositions(*decompositions))
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def main():
    entries, data = decompositions()
    assert len(data) < 1 << 16 and max(entry[2] for entry in entries) < 32
    write(sys.argv[1], (tokenizers.__version__, unicodedata.unidata_version),
          class_runs(), lowercase(), combining(), compositions(), (entries, data))


if __name__ == "__main__":
    main()
