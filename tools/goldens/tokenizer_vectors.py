#!/usr/bin/env python3
"""Small tokenizers of every family, and what Hugging Face's `tokenizers` makes of texts.

    python3 tools/goldens/tokenizer_vectors.py tests/data/tokenizers

Needs tokenizers (made with 0.23.3). Writes <name>.json, each trained here on a few lines,
and vectors.json: for each tokenizer and text the ids, with and without the tokens that
begin and end a text, and the text that decoding gives.
"""
import json
import pathlib
import random
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

WORDS = """the of and to in is was he for it with as his on be at by had not are but from or
have an they which one you were her all she there would their we him been has when who will
more no if out so said what up its about into than them can only other new some could time
these two may then do first any my now such like our over man me even most made after also
did many before must through back years where much your way well down should because each
just those people too little good very make world still own see men work long get here
between both life being under never day same another know while last might us great old
year off come since against go came right used take three int return void static const if
else for while struct char size_t int64_t def class import self print lambda x y z
Ärger größer naïve façade señor für über être déjà Москва привет как дела 世界 你好 中文 日本
ひらがな カタカナ 한국어 안녕 สวัสดี שלום مرحبا नमस्ते""".split()
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
            "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
            "\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
TEXTS = [
    "", " ", "a", "Hello world", " Hello  world ", "the man said: it's NOT what they'LL do'",
    "x = 1234567; // 3.14159\n\n\tif (x) {\n        return x;\n    }\n", "\r\n\r\n \n a\n",
    "I'm we're you've he'd 's 'S 'ſ ''t", "naïve façade – “quotes” … ½ ² Ⅷ ﬁ Å ÅA\u030a",
    "Привет, как дела? 你好，世界！ ひらがなとカタカナ 한국어", "שלום مرحبا नमस्ते สวัสดี",
    "👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ 🫠", "e\u0301\u0323 q\u0307\u0323 \u1100\u1161\u11a8 \uac01 \u0344 \u2126",
    "<s>begin</s> <mask> <|end|><|end|>the<|end|> [CLS] [MASK]x the_word", "a<mask>  b  <mask>c",
    "\u00a0nbsp\u3000wide\u2028line\u0085next\u200bzero\ufeffbom\u00adsoft", "\ufffd\ufffd\u0000x"[:2],
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    " " * 200 + "x" + "\n" * 120 + "\t" * 3, "=-" * 90, "1" * 150, "the" * 60, "漢" * 90,
    "\u0301\u0316" * 80, "İstanbul ΑΣ ẞ ǅ", "a.b,c!d?e'f do not n't ' x ' 're",
    "\u0378\U00010d40\U0001e900\u1c89 \u166d\u1734\u1cf2 \U000e0001",
]


def corpus():
    draw = random.Random(1)
    lines = []
    for _ in range(3000):
        line = " ".join(draw.choices(WORDS, k=12))
        lines.append(line + draw.choice([".", "!", "?", "\n\n", " 12", " 345;", "()", "'s"]))
    return lines


def byte_level(**more):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **more)


def split(regex, behavior="isolated"):
    return pre_tokenizers.Split(Regex(regex), behavior)


def train_bytes(pre, special, normalizer=None, ignore_merges=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def gpt2():
    t = train_bytes(byte_level(), ["<|end|>"])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def llama3():
    t = train_bytes(pre_tokenizers.Sequence([split(LLAMA3), byte_level(use_regex=False)]),
                    ["<s>", "<|end|>"], ignore_merges=True)
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])])
    return t


def qwen2():
    return train_bytes(pre_tokenizers.Sequence([split(QWEN2), byte_level(use_regex=False)]),
                       ["<|end|>"], normalizers.NFC())


def deepseek():
    return train_bytes(pre_tokenizers.Sequence([
        split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK),
        byte_level(use_regex=False)]), ["<s>", "<|end|>"])


def smollm():
    return train_bytes(pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level()]),
                       ["<|end|>"])


def falcon():
    return train_bytes(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(False),
        split("[0-9][0-9][0-9]")]), ["<|end|>"])


def roberta():
    t = train_bytes(pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "</s>"])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.add_tokens([AddedToken("the_word", single_word=True), AddedToken("x  ", rstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return t


def sentencepiece(metaspace):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"]
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=800, show_progress=False,
        special_tokens=special + ["<0x%02X>" % i for i in range(256)]))
    file = json.loads(t.to_str())
    file["added_tokens"] = file["added_tokens"][:3]
    file["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(file))
    if metaspace:
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"),
                                             normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A",
                                                     special_tokens=[("<s>", 1)])
    return t


def llama2():
    return sentencepiece(False)


def mistral():
    return sentencepiece(True)


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=special, show_progress=False))
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.enable_truncation(8)
    t.enable_padding(length=16)
    return t


def clip():
    """Suffixes, unknown tokens, steps that are seldom used."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([
        normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
        normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous"),
        split(r"[a-z]+ly|\d+", "merged_with_next"), pre_tokenizers.CharDelimiterSplit("_")])
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>",
        limit_alphabet=60, show_progress=False))
    t.decoder = decoders.BPEDecoder()
    return t


def spaces():
    """A BPE of characters behind WordPiece's prefix; Metaspace that cuts."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Metaspace(), split("[aeiou]", "merged_with_previous")])
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], continuing_subword_prefix="##",
        limit_alphabet=100, show_progress=False))
    t.decoder = decoders.Metaspace()
    return t


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    vectors = []
    for make in (gpt2, llama3, qwen2, deepseek, smollm, falcon, roberta, llama2, mistral,
                 bert, clip, spaces):
        tokenizer, name = make(), make.__name__
        tokenizer.save(str(out / (name + ".json")), pretty=False)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            vectors.append({"tokenizer": name, "text": text, "ids": ids,
                            "special": tokenizer.encode(text).ids,
                            "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                            "skipped": tokenizer.decode(ids)})
    (out / "vectors.json").write_text("[" + ",\n".join(
        json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in vectors) + "]\n")


main()
