"""A folder's model with PEFT's LoRA beside all linear layers of its blocks, in PyTorch:
tokens a second and peak memory.

    peft_lora.py FOLDER [--context 1024] [--micro-batch 1] [--steps 4] [--rank 16] [--bf16]

Attention is PyTorch's fused one; the optimizer AdamW; tokens are drawn.
"""
import argparse
import time

import torch
import transformers
from peft import LoraConfig, get_peft_model

import measure


def read_options():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder")
    options.add_argument("--context", type=int, default=1024)
    options.add_argument("--micro-batch", type=int, default=1)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--rank", type=int, default=16)
    options.add_argument("--bf16", action="store_true")
    return options.parse_args()


def main():
    args = read_options()
    torch.manual_seed(1)
    base = transformers.AutoModelForCausalLM.from_pretrained(
        args.folder, dtype=torch.bfloat16 if args.bf16 else torch.float32,
        attn_implementation="sdpa")
    base.config.use_cache = False
    model = get_peft_model(base, LoraConfig(
        r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear",
        task_type="CAUSAL_LM")).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    seconds = []
    for _ in range(args.steps):
        ids = torch.randint(0, base.config.vocab_size, (args.micro_batch, args.context))
        begin = time.perf_counter()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        seconds.append(time.perf_counter() - begin)
    measure.report(args.micro_batch * args.context, seconds,
                   trained=sum(p.numel() for p in trained))


if __name__ == "__main__":
    main()
