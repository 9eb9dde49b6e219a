"""Tokens a second of transformers' generate with its cache, greedy, for bench/sample.sh.

    sample.py FOLDER [f32|bf16] [PROMPT] [TOKENS]

Prints "TOKENS/S PROMPT-TOKENS/S". The prompt's time is that of generating one token.
"""
import sys
import time

import torch
import transformers


def main():
    folder, dtype = sys.argv[1], sys.argv[2]
    prompt, count = int(sys.argv[3]), int(sys.argv[4])
    types = {"f32": torch.float32, "bf16": torch.bfloat16}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=types[dtype]).eval()
    words = model.config.vocab_size
    ids = torch.tensor([[i * 7919 % words for i in range(prompt)]])

    def seconds(tokens):
        begin = time.perf_counter()
        model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                       min_new_tokens=tokens, max_new_tokens=tokens, use_cache=True,
                       pad_token_id=0)
        return time.perf_counter() - begin

    seconds(2)
    first = seconds(1)
    print(f"{(count - 1) / (seconds(count) - first):.1f} {prompt / first:.0f}")


with torch.no_grad():
    main()
