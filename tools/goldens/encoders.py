"""Writes tests/data/encoders. Needs torch, transformers, tokenizers and numpy:

    python tools/goldens/encoders.py [FOLDER]

For bert and roberta: a small random model with odd sizes in the layout of
sentence-transformers, with a tokenizer that is trained on the texts; texts and pairs of
texts (texts.jsonl); and golden.json: ids and types of each by `tokenizers`, whole and cut,
and its embeddings by transformers in float64, pooled in three ways, not normalized.
"""
import json
import pathlib
import sys

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import RobertaProcessing, TemplateProcessing

CUT = 12  # tokens of a text that is cut

TEXTS = [
    ("The river was low, and the boats lay on the mud.", None),
    ("A short one", None),
    ("Who waits for the tide?", "The boats wait for the tide, and so do the men in them."),
    ("Caf\u00e9, na\u00efve, 20% of 1,000!", None),
    ("x", None),
    ("Rain fell all day on the hills behind the town, and in the evening the river "
     "rose by a foot; nobody was surprised.", None),
    ("", None),
    ("The tide", "x"),
    ("The boats wait for the tide, and so do the men in them.", "Who waits?"),
    ("At night the lamps on the quay were lit one after the other.", None),
]


def joined():
    return [text for pair in TEXTS for text in pair if text]


def wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        joined(), trainers.WordPieceTrainer(vocab_size=150, special_tokens=special,
                                            show_progress=False))
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")])
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(
        joined(), trainers.BpeTrainer(vocab_size=300, special_tokens=special,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                      show_progress=False))
    tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0),
                                                 add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def model_of(kind, tokenizer):
    torch.manual_seed(5)
    config = getattr(transformers, kind + "Config")(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=28, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=51, max_position_embeddings=110,
        type_vocab_size=1 if kind == "Roberta" else 2, initializer_range=0.3,
        layer_norm_eps=1e-5 if kind == "Roberta" else 1e-12)
    model = getattr(transformers, kind + "Model")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "LayerNorm" in name:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def embed(model, encoding):
    with torch.no_grad():
        types = [min(t, model.config.type_vocab_size - 1) for t in encoding.type_ids]
        x = model(input_ids=torch.tensor([encoding.ids]),
                  token_type_ids=torch.tensor([types])).last_hidden_state[0]
    return {"mean": x.mean(0).tolist(), "cls": x[0].tolist(), "last": x[-1].tolist()}


def write_folder(folder, kind, tokenizer, pooling):
    model = model_of(kind, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [{"idx": i, "name": str(i), "path": path,
               "type": "sentence_transformers.models." + name}
              for i, (path, name) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=2) + "\n")
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 100, "do_lower_case": False}, indent=2) + "\n")
    model = model.double()
    golden = []
    for text, second in TEXTS:
        whole = tokenizer.encode(text, second)
        tokenizer.enable_truncation(CUT)
        cut = tokenizer.encode(text, second)
        tokenizer.no_truncation()
        golden.append({"ids": whole.ids, "types": whole.type_ids, "cut_ids": cut.ids,
                       "cut_types": cut.type_ids, **embed(model, whole)})
    (folder / "golden.json").write_text(json.dumps({"cut": CUT, "texts": golden}) + "\n")
    rows = [{"text": a} if b is None else {"text": a, "text_pair": b} for a, b in TEXTS]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main():
    root = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "encoders"
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root
    flags = {"word_embedding_dimension": 28, "pooling_mode_cls_token": False,
             "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
    write_folder(root / "bert", "Bert", wordpiece(), flags)
    write_folder(root / "roberta", "Roberta", byte_level(), {"pooling_mode": "cls"})


main()
