"""transformers' Llama of SmolLM2-135M's or Llama 7B's sizes in PyTorch, with its fused attention: tokens a
second and peak memory. In float32 and eager, or with bf16 autocast, or compiled.

    torch_llama.py [--context 1024] [--micro-batch 1] [--accumulation 4] [--steps 3]
                   [--warm 1] [--layers 30] [--size smollm2|7b] [--bf16] [--device cpu]
                   [--attention flash|cudnn] [--compile [default|max-autotune]]
                   [--lora RANK] [--save FOLDER]

With --save it makes a folder of new weights in bf16, and trains nothing. With --lora the weights are frozen, in bf16, and PEFT's LoRA is beside all linear layers
of the blocks.
"""
import argparse

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

import torch_gpt2


SIZES = {
    "smollm2": {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
                "num_attention_heads": 9, "num_key_value_heads": 3,
                "tie_word_embeddings": True,
                "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0}},
    "7b": {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
           "num_attention_heads": 32},
}


class Llama(LlamaForCausalLM):
    def loss(self, ids, targets):
        """ids, targets: [batch, length]"""
        logits = self(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def with_lora(model, rank):
    from peft import LoraConfig, get_peft_model

    model = model.to(torch.bfloat16)
    get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank,
                                     target_modules="all-linear"))
    return model


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", choices=SIZES, default="smollm2")
    options.add_argument("--lora", type=int, help="the rank of adapters")
    options.add_argument("--save", metavar="FOLDER")
    args = torch_gpt2.parse(options)
    torch.manual_seed(1)
    config = LlamaConfig(num_hidden_layers=args.layers, max_position_embeddings=8192,
                         **SIZES[args.size])
    config._attn_implementation = "sdpa"
    if args.save:
        with torch.device(args.device):
            LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(args.save)
        return

    def make():
        model = Llama(config).train()
        return with_lora(model, args.lora) if args.lora else model

    torch_gpt2.run(make, args)


if __name__ == "__main__":
    main()
