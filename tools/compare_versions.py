#!/usr/bin/env python3
"""compare_versions.py OLD [--count N] [--first I] [--seed S] [--keep DIR]

Trains N drawn run files (500) for five steps with an older version of the program and
with this one, and compares them case by case:

  bits       every tensor of the weights and of the optimizer's state
  marks      the arenas' high-water marks on the device and on the host; what data sets
             hold in memory is left out, since it belongs to no plan
  time       the step simulated on examples/machines/dgx-h100.json: this version may be
             half a per cent slower

OLD is a commit, which is built in build-old, or a program. This version's program is
build/tranche. A case is a function of its number and the seed. The draws reach over
models, batches, ragged batches, waves, ranks 1 to 4, stages 0 to 3, precisions, sums
in 16 bits and fixed point, every optimizer, offload to the host and to NVMe,
recomputation, slices of the vocabulary, barriers, skipped updates, changes of the batch
and evaluations. It ends with 1 where something differs. Needs mpirun.
"""
import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPS = 5
SLOWER = 1.005
# Bytes by which the statistics of a step, which ranks exchange, have grown: a number
# more for the noise scale of tied tensors, rounded up to a line of the cache.
GROWN = 64


# ---- the two programs


def build(commit):
    """Builds the program of a commit in build-old; its path."""
    tree = os.path.join(ROOT, "build-old", "tree")
    program = os.path.join(tree, "build", "tranche")
    stamp = os.path.join(ROOT, "build-old", "commit")
    full = subprocess.check_output(
        ["git", "-C", ROOT, "rev-parse", commit + "^{commit}"], text=True).strip()
    if os.path.exists(program) and open(stamp).read() == full:
        return program
    shutil.rmtree(os.path.join(ROOT, "build-old"), ignore_errors=True)
    os.makedirs(tree)
    archive = subprocess.Popen(["git", "-C", ROOT, "archive", full],
                               stdout=subprocess.PIPE)
    subprocess.check_call(["tar", "-x", "-C", tree], stdin=archive.stdout)
    subprocess.check_call(["cmake", "--preset", "release"], cwd=tree,
                          stdout=subprocess.DEVNULL)
    subprocess.check_call(["ninja", "-C", "build", "tranche"], cwd=tree,
                          stdout=subprocess.DEVNULL)
    open(stamp, "w").write(full)
    return program


def run(program, arguments, ranks, folder):
    """Runs the program on so many ranks; (status, output)."""
    command = [program] + arguments
    if ranks > 1:
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n",
                   str(ranks)] + command
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_WAIT_POLICY="passive",
                       OMPI_MCA_mpi_yield_when_idle="1", NO_COLOR="1")
    done = subprocess.run(command, cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    return done.returncode, done.stdout


# ---- the draws


def draw_model(r):
    kind = r.choice(["gpt2", "gpt2", "gpt2", "mlp", "resnet"])
    if kind == "mlp":
        sizes = [r.choice([3, 16, 40]) for _ in range(r.randint(1, 3))]
        return {"model_type": "mlp", "layer_sizes": [12] + sizes + [5]}
    if kind == "resnet":
        return {"model_type": "resnet", "depth": 8, "width": 4, "image_size": 8,
                "num_channels": 1, "num_labels": 5,
                "batch_norm": r.choice(["effective_batch", "rank_batch",
                                        "micro_batch"])}
    dropout = r.choice([0, 0.1])
    return {"model_type": "gpt2", "n_layer": r.randint(1, 4),
            "n_embd": r.choice([8, 16, 24]), "n_head": r.choice([1, 2, 4]),
            "n_positions": r.choice([4, 8, 12]), "vocab_size": 256,
            "resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}


def draw_data(r, model, folder):
    if model["model_type"] == "gpt2":
        return {"format": "bytes", "train": ["text"],
                "validation": r.choice([0, 0.1])}
    if model["model_type"] == "mlp":
        return {"format": "random", "samples": r.choice([30, 200]), "features": 12,
                "classes": 5}
    return {"format": "npy", "train": ["images.npy"], "labels": "labels.npy"}


def draw_optimizer(r):
    kind = r.choice(["Adam", "AdamW", "SGD", "Lion", "Adagrad", "Lamb", "LARS"])
    params = {"lr": r.choice([1e-3, 3e-3])}
    if kind == "SGD":
        params["momentum"] = r.choice([0, 0.9])
    if kind != "LARS":  # the decay of its vectors differs between versions
        params["weight_decay"] = r.choice([0, 0.1])
    if kind == "Lamb":
        params["form"] = r.choice(["deepspeed", "paper"])
    return {"type": kind, "params": params}


def draw_placement(r, ranks):
    zero = {"stage": r.randint(0, 3), "overlap_comm": r.random() < 0.8}
    memory = {}
    if r.random() < 0.5:
        zero["offload_optimizer"] = {"device": r.choice(["cpu", "cpu", "nvme"])}
        if r.random() < 0.25 and zero["offload_optimizer"]["device"] == "cpu":
            zero["offload_optimizer"]["ratio"] = 0.5
    if (ranks == 1 or zero["stage"] == 3) and r.random() < 0.4:
        zero["offload_param"] = {"device": r.choice(["cpu", "nvme"])}
    if "nvme" in json.dumps(zero):
        memory["nvme"] = {"path": "nvme", "gradients": r.random() < 0.4}
    return zero, memory


def draw_execution(r, g, model, stage):
    execution = {"threads": 1, "wave": r.choice(["auto", r.randint(1, g)]),
                 "reproducible": r.random() < 0.2}
    if r.random() < 0.4:
        execution["recompute"] = r.sample(
            ["norm", "activation", "attention", "residual", "pre_activation",
             "product", "unit"], r.randint(1, 3))
    if model["model_type"] == "gpt2" and stage == 3 and r.random() < 0.5:
        execution["vocabulary_slices"] = r.randint(2, 4)
    return execution


def draw_precision(r, model, reproducible):
    run_file = {}
    if model["model_type"] != "resnet":
        compute = r.choice(["f32", "f32", "bf16", "fp16"])
        if compute != "f32":
            run_file[compute] = {"enabled": True}
        if compute == "fp16":  # the first updates are skipped
            run_file["fp16"]["initial_scale_power"] = r.choice([8, 16, 32])
    if not reproducible and r.random() < 0.25:
        run_file["data_types"] = {"grad_accum_dtype": r.choice(["bf16", "fp16"])}
    return run_file


def draw(number, seed, folder):
    """Case `number`: a run file and its number of ranks."""
    r = random.Random(f"{seed} {number}")
    ranks = r.choice([1, 1, 1, 2, 2, 3, 4])
    micro, g = r.randint(1, 3), r.randint(1, 5)
    most = micro * g * ranks
    batch = most - (r.randrange(most) if r.random() < 0.33 else 0)
    model = draw_model(r)
    zero, memory = draw_placement(r, ranks)
    execution = draw_execution(r, g, model, zero["stage"])
    run_file = {"model": model, "data": draw_data(r, model, folder), "steps": STEPS,
                "seed": number, "train_batch_size": batch,
                "train_micro_batch_size_per_gpu": micro,
                "optimizer": draw_optimizer(r), "zero_optimization": zero,
                "execution": execution, "memory": memory,
                "gradient_clipping": r.choice([0, 1.0, 0.1])}
    run_file.update(draw_precision(r, model, execution["reproducible"]))
    if r.random() < 0.3 and model["model_type"] != "gpt2":
        # Of tied tensors, which GPT-2 has, it measures more than before, and so takes
        # longer.
        run_file["noise_scale"] = {"measure": True}
    if r.random() < 0.2:
        run_file["batch_schedule"] = [[2, r.randint(1, 2 * most)]]
    if r.random() < 0.2:
        run_file["spike_guard"] = {"action": "skip", "threshold": 0.5, "after": 1}
    if r.random() < 0.2:
        run_file["activation_checkpointing"] = {
            "number_checkpoints": r.randint(1, 3),
            "cpu_checkpointing": r.random() < 0.5}
    if run_file["data"].get("validation"):
        run_file["evaluation"] = {"every": 2}
    return run_file, ranks


def write_npy(path, kind, shape, numbers):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        f.write(header.encode())
        f.write(struct.pack("<%d%s" % (len(numbers), kind[1:].replace("f4", "f")
                                       .replace("i4", "i")), *numbers))


def write_data(folder):
    r = random.Random(0)
    with open(os.path.join(folder, "text"), "wb") as f:
        f.write(bytes(r.choice(b"abcdefgh ,.\n") for _ in range(4000)))
    images = [r.gauss(0, 1) for _ in range(60 * 64)]
    write_npy(os.path.join(folder, "images.npy"), "<f4", (60, 1, 8, 8), images)
    write_npy(os.path.join(folder, "labels.npy"), "<i4", (60,),
              [r.randrange(5) for _ in range(60)])
    os.makedirs(os.path.join(folder, "nvme"), exist_ok=True)


# ---- what comes of a case


def tensors(path):
    """name -> bytes of a safetensors file."""
    with open(path, "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: data[slice(*entry["data_offsets"])]
            for name, entry in header.items()}


def state_of(out):
    state = {}
    for name in ("model.safetensors", "optimizer.safetensors"):
        path = os.path.join(out, "checkpoints", "latest", name)
        if os.path.exists(path):
            for tensor, data in tensors(path).items():
                state[name + ":" + tensor] = data
    return state


def marks_of(out, data_bytes):
    """The largest high-water marks of the run, without what data sets hold."""
    marks = {"device": 0, "host": 0}
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
        for line in f:
            peak = json.loads(line).get("peak_bytes")
            for space in marks if peak else ():
                marks[space] = max(marks[space], peak[space])
    marks["host"] -= data_bytes
    return marks


class Result:
    """What one version makes of a case."""

    def __init__(self, program, case, ranks, folder, name):
        run_path = os.path.join(folder, "run.json")
        json.dump(case, open(run_path, "w", encoding="utf-8"))
        out = os.path.join(folder, "out-" + name)
        shutil.rmtree(out, ignore_errors=True)
        self.status, self.output = run(program, ["train", "run.json", "--out", out],
                                       ranks, folder)
        self.state = state_of(out) if self.status in (0, 7) else {}
        self.seconds, self.edges, data_bytes = None, 0, 0
        status, text = run(program, ["plan", "run.json", "--ranks", str(ranks),
                                     "--json"], 1, folder)
        if status == 0:
            plan = json.loads(text[text.index("{"):])
            data_bytes = plan["ledger"]["host"]["data"]
            self.edges = sum(1 for step in plan["steps"]
                             for key in step if key.startswith("wait"))
        self.marks = marks_of(out, data_bytes) if self.status in (0, 7) else None
        machine = os.path.join(ROOT, "examples", "machines", "dgx-h100.json")
        status, text = run(program, ["simulate", "run.json", "--ranks", str(ranks),
                                     "--machine", machine, "--json"], 1, folder)
        if status == 0:
            simulated = json.loads(text[text.index("{"):])
            self.seconds = simulated["seconds"]
            # Older versions left out the tracking of running statistics where an
            # update is deferred, and took no time for packing and merging parts of
            # wave tensors.
            for kind in ("track", "pack", "merge"):
                self.seconds -= simulated["kinds"].get(kind, {}).get("seconds", 0)


def differences(old, new):
    """In words: what the new version does otherwise, and may not."""
    if old.status == 2 and new.status == 0:
        return []  # what it refused is supported now
    if old.status != new.status:
        return [f"status {old.status} before, {new.status} now"]
    if old.status not in (0, 7):
        return []
    found = [tensor for tensor in sorted(set(old.state) | set(new.state))
             if old.state.get(tensor) != new.state.get(tensor)]
    words = [f"bits of {len(found)} tensors differ, first {found[0]}"] if found else []
    for space in old.marks:
        if new.marks[space] > old.marks[space] + GROWN * (space == "device"):
            words.append(f"{space}: {new.marks[space]} bytes, {old.marks[space]} "
                         "before")
    if old.seconds and new.seconds and new.seconds > SLOWER * old.seconds:
        words.append(f"simulated {new.seconds:.6g} s, {old.seconds:.6g} s before")
    return words


class Counts:
    def __init__(self):
        self.cases = self.trained = self.refused = self.differ = 0
        self.faster = self.smaller = self.edges_old = self.edges_new = 0
        self.supported = 0

    def add(self, old, new, words):
        self.cases += 1
        self.differ += bool(words)
        if old.status not in (0, 7):
            self.supported += new.status == 0
            self.refused += not words and new.status != 0
            return
        self.trained += not words
        self.edges_old += old.edges
        self.edges_new += new.edges
        if old.seconds and new.seconds:
            self.faster += new.seconds < old.seconds / SLOWER
        if new.marks and old.marks:
            self.smaller += any(new.marks[s] < old.marks[s] for s in old.marks)

    def __str__(self):
        return (f"{self.cases} cases: {self.trained} trained alike, {self.refused} "
                f"refused by both, {self.supported} supported now, {self.differ} "
                f"differ; of the trained {self.faster} "
                f"are simulated more than {SLOWER - 1:.1%} faster, {self.smaller} need "
                f"less memory; steps that wait: {self.edges_new}, {self.edges_old} "
                "before")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", help="a folder for the run files of what differs")
    options = parser.parse_args()
    old_program = os.path.abspath(options.old) if os.path.isfile(options.old) \
        else build(options.old)
    new_program = os.path.join(ROOT, "build", "tranche")
    counts, number = Counts(), options.first
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        while counts.trained + counts.differ < options.count:
            case, ranks = draw(number, options.seed, folder)
            old = Result(old_program, case, ranks, folder, "old")
            new = Result(new_program, case, ranks, folder, "new")
            words = differences(old, new)
            counts.add(old, new, words)
            for word in words:
                print(f"case {number}, ranks {ranks}: {word}")
            if words and options.keep:
                os.makedirs(options.keep, exist_ok=True)
                shutil.copy(os.path.join(folder, "run.json"),
                            os.path.join(options.keep, f"{number}-{ranks}.json"))
                for name, result in (("old", old), ("new", new)):
                    open(os.path.join(options.keep, f"{number}.{name}"), "w",
                         encoding="utf-8").write(result.output)
            number += 1
            if number % 50 == 0:
                print(counts, flush=True)
    print(counts)
    return 1 if counts.differ else 0


if __name__ == "__main__":
    sys.exit(main())
