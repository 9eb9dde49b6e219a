"""The loss of GPT-2 by transformers, on weights and text that Tranche trains on.

    gpt2_forward.py --make FOLDER [--layers 48] [--width 1600] [--heads 25]
                    [--context 1024]
    gpt2_forward.py --loss FOLDER --text FILE [--samples 8]

--make draws a model and saves it as a Hugging Face folder in float32; --loss is the mean
over the first samples of the file, read as bytes: sample i is bytes [i n, i n + n + 1),
n the context.
"""
import argparse
import json

import torch
import transformers


def make(args):
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        n_positions=args.context, n_layer=args.layers, n_embd=args.width,
        n_head=args.heads, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    transformers.GPT2LMHeadModel(config).save_pretrained(args.make,
                                                         max_shard_size="100GB")


@torch.no_grad()
def loss(args):
    model = transformers.GPT2LMHeadModel.from_pretrained(args.loss).eval()
    n = model.config.n_positions
    with open(args.text, "rb") as file:
        text = torch.tensor(list(file.read(args.samples * n + 1)))
    total = 0.0
    for i in range(args.samples):
        ids = text[i * n:i * n + n + 1]
        logits = model(ids[None, :-1]).logits[0]
        total += torch.nn.functional.cross_entropy(logits, ids[1:]).item()
    print(json.dumps({"loss": total / args.samples, "samples": args.samples}))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--make")
    options.add_argument("--loss")
    options.add_argument("--text")
    options.add_argument("--samples", type=int, default=8)
    options.add_argument("--layers", type=int, default=48)
    options.add_argument("--width", type=int, default=1600)
    options.add_argument("--heads", type=int, default=25)
    options.add_argument("--context", type=int, default=1024)
    arguments = options.parse_args()
    make(arguments) if arguments.make else loss(arguments)
