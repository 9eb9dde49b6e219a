"""How far embeddings of Tranche are from those of transformers, by hand:

    python tools/compare_embeddings.py FOLDER TEXTS.jsonl [--program build/tranche]

FOLDER is one of sentence-transformers or transformers, of a BERT or a RoBERTa, whose
embeddings are the mean of a text's tokens, of length 1. TEXTS.jsonl has records of "text",
and "text_pair" where there are two. Needs torch and transformers. Exit status 1: farther
than 1e-4 from transformers, or packed rows farther than 1e-6 from padded ones.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def of_transformers(folder, rows, length):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    out = []
    with torch.no_grad():
        for row in rows:
            ids = tokenizer(row["text"], row.get("text_pair"), return_tensors="pt",
                            truncation=True, max_length=length)
            x = model(**ids).last_hidden_state[0].mean(0)
            out.append((x / x.norm()).numpy())
    return np.stack(out)


def of_tranche(program, folder, texts, length, packing):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "e.npy"
        subprocess.run([program, "evaluate", folder, "--data", texts, "--format", "jsonl",
                        "--set", "pooling=mean", "--set", f"data.max_length={length}",
                        "--set", f"data.packing={packing}", "--embeddings", path],
                       check=True, stdout=subprocess.DEVNULL)
        return np.load(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("texts")
    parser.add_argument("--program", default="build/tranche")
    parser.add_argument("--length", type=int, default=128)
    a = parser.parse_args()
    rows = [json.loads(line) for line in open(a.texts, encoding="utf-8") if line.strip()]
    want = of_transformers(a.folder, rows, a.length)
    packed, padded = [of_tranche(a.program, a.folder, a.texts, a.length, packing)
                      for packing in ("true", "false")]
    far = [float(abs(x - want).max()) for x in (packed, padded)]
    apart = float(abs(packed - padded).max())
    print(f"packed: at most {far[0]:.1e} from transformers'")
    print(f"padded: at most {far[1]:.1e} from transformers'")
    print(f"packed and padded: at most {apart:.1e} apart")
    sys.exit(max(far) > 1e-4 or apart > 1e-6)


main()
