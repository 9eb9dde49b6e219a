"""check_events.py TRANCHE SOURCE FOLDER: event files as TensorBoard reads them.

Trains a small run in two parts, and compares what the tensorboard package reads with
metrics.jsonl and with the csv files. Exit status 77: the package is not here.
"""

import csv
import json
import os
import shutil
import subprocess
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("check_events: skipped: the tensorboard package is not here")
    raise SystemExit(77)

PROGRAM, SOURCE, FOLDER = (os.path.abspath(path) for path in sys.argv[1:4])
TAGS = {"Train/Samples/train_loss": "loss", "Train/Samples/lr": "lr",
        "Train/Samples/grad_norm": "grad_norm",
        "Train/Samples/tokens_per_second": "tokens_per_second"}
RUN = {
    "model": {"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2,
              "n_positions": 16, "vocab_size": 256},
    "data": {"format": "bytes", "train": [os.path.join(SOURCE, "ARCHITECTURE.md")]},
    "train_batch_size": 8, "steps": 20, "out": "out",
    "tensorboard": {"enabled": True, "output_path": "logs", "job_name": "a"},
    "csv_monitor": {"enabled": True, "output_path": "logs", "job_name": "b"},
}


def single(value):
    import struct
    return struct.unpack("f", struct.pack("f", value))[0]


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    os.chdir(FOLDER)
    with open("run.json", "w", encoding="utf-8") as to:
        json.dump(RUN, to)
    for steps in ("12", "20"):
        subprocess.run([PROGRAM, "train", "run.json", "--steps", steps], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open("out/metrics.jsonl", encoding="utf-8") as lines:
        steps = [line for line in map(json.loads, lines) if line["kind"] == "step"]
    assert len(steps) == 20
    read = EventAccumulator("logs/a", size_guidance={"scalars": 0, "tensors": 0})
    read.Reload()
    for tag, key in TAGS.items():
        wanted = [(line["samples"], line[key]) for line in steps]
        found = [(one.step, one.value) for one in read.Scalars(tag)]
        assert found == [(step, single(value)) for step, value in wanted], tag
        with open(f"logs/b/{tag.replace('/', '_')}.csv", encoding="utf-8",
                  newline="") as table:
            rows = list(csv.reader(table))
        assert rows[0] == ["step", tag.rsplit("/", 1)[1]], rows[0]
        assert [(int(a), float(b)) for a, b in rows[1:]] == wanted, tag
    texts = {tag: read.Tensors(tag)[0].tensor_proto.string_val[0].decode()
             for tag in read.Tags()["tensors"]}
    assert '"train_batch_size": 8' in texts["run.json"], texts
    assert "ledger at the fullest moment" in texts["plan.txt"], texts
    print("check_events: TensorBoard reads what the run wrote")


main()
