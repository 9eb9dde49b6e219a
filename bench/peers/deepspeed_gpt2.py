"""GPT-2 124M under DeepSpeed's ZeRO on CPU ranks, float32: tokens a second of all ranks
together and the largest peak of memory of one.

    deepspeed_gpt2.py [--stage 0] [--ranks 2] [--context 256] [--micro-batch 1]
                      [--accumulation 4] [--steps 4] [--layers 12] [--threads 1]
                      [--optimizer-on cpu|nvme] [--parameters-on cpu|nvme]
                      [--nvme FOLDER]

It starts its ranks itself (torch.distributed.run). The model is transformers'
GPT2LMHeadModel without dropout; the optimizer is torch's AdamW, or, where it is
offloaded, DeepSpeed's own one for CPUs, which it compiles at the first use, as it does
its module for NVMe (which needs libaio's development files); ranks talk over gloo. DeepSpeed compiles its all-reduce in
shared memory at the first use where it finds a C++ compiler.
"""
import argparse
import os
import sys
import time


def read_options():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--stage", type=int, default=0)
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--context", type=int, default=256)
    options.add_argument("--micro-batch", type=int, default=1)
    options.add_argument("--accumulation", type=int, default=4)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--optimizer-on", choices=["cpu", "nvme"])
    options.add_argument("--parameters-on", choices=["cpu", "nvme"])
    options.add_argument("--nvme")
    return options.parse_args()


def launch(args):
    """Becomes the launcher of this script on so many ranks."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run",
                              "--standalone", "--nproc_per_node", str(args.ranks),
                              *sys.argv])


def make_model(args):
    import transformers

    config = transformers.GPT2Config(
        n_positions=args.context, n_layer=args.layers, resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, use_cache=False)
    return transformers.GPT2LMHeadModel(config)


def offload(device, folder):
    place = {"device": device, "pin_memory": False}
    return {**place, "nvme_path": folder} if device == "nvme" else place


def make_zero(args):
    zero = {"stage": args.stage}
    if args.optimizer_on:
        zero["offload_optimizer"] = offload(args.optimizer_on, args.nvme)
    if args.parameters_on:
        zero["offload_param"] = offload(args.parameters_on, args.nvme)
    return zero


def make_engine(args, model):
    import deepspeed

    decayed = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1},
              {"params": plain, "weight_decay": 0.0}]
    config = {
        "train_micro_batch_size_per_gpu": args.micro_batch,
        "gradient_accumulation_steps": args.accumulation,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {
            "lr": 1e-4, "torch_adam": not args.optimizer_on}},
        "zero_optimization": make_zero(args),
        "steps_per_print": 10**9,
    }
    return deepspeed.initialize(model=model, model_parameters=groups, config=config)[0]


def step(engine, batches):
    for ids in batches:
        engine.backward(engine(input_ids=ids, labels=ids).loss)
        engine.step()


def run(args):
    import torch
    import deepspeed

    import measure

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    deepspeed.init_distributed("gloo")
    engine = make_engine(args, make_model(args))
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(1 + rank)
    seconds = []
    for _ in range(args.steps):
        batches = [torch.randint(256, (args.micro_batch, args.context))
                   for _ in range(args.accumulation)]
        torch.distributed.barrier()
        begin = time.perf_counter()
        step(engine, batches)
        torch.distributed.barrier()
        seconds.append(time.perf_counter() - begin)
    peaks = [None] * ranks
    torch.distributed.all_gather_object(peaks, measure.peak_bytes())
    if rank == 0:
        tokens = ranks * args.accumulation * args.micro_batch * args.context
        measure.report(tokens, seconds, peak_bytes=max(peaks), ranks=ranks,
                       stage=args.stage, deepspeed=deepspeed.__version__)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    options = read_options()
    if "LOCAL_RANK" in os.environ:
        run(options)
    else:
        launch(options)
