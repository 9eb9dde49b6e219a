"""How far embeddings of Tranche are from those of sentence-transformers, by hand:

    python tools/compare_sentences.py FOLDER TEXTS.jsonl [--program build/tranche]

FOLDER is a checkpoint that a run with task "contrastive" has saved; sentence-transformers
loads it by its own files (modules.json, 1_Pooling, sentence_bert_config.json).
TEXTS.jsonl has records of "text". Needs sentence_transformers. Exit status 1: the lengths
of texts differ, or a cosine is farther than 1e-5 from 1.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from sentence_transformers import SentenceTransformer


def of_tranche(program, folder, texts):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "e.npy"
        subprocess.run([program, "evaluate", folder, "--data", texts, "--format", "jsonl",
                        "--embeddings", path], check=True, stdout=subprocess.DEVNULL)
        return np.load(path).astype(np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("texts")
    parser.add_argument("--program", default="build/tranche")
    a = parser.parse_args()
    rows = [json.loads(line)["text"] for line in open(a.texts, encoding="utf-8")]
    theirs = SentenceTransformer(a.folder, device="cpu")
    want = theirs.encode(rows).astype(np.float64)
    got = of_tranche(a.program, a.folder, a.texts)
    length = np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    cosine = (got * want).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    print(f"{len(rows)} texts of {theirs.max_seq_length} tokens at most: cosines within "
          f"{abs(1 - cosine).max():.1e} of 1, lengths within {abs(1 - length).max():.1e}")
    sys.exit(not (abs(1 - cosine).max() <= 1e-5 and abs(1 - length).max() <= 1e-5))


if __name__ == "__main__":
    main()
