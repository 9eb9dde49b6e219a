"""Chats of some words, and a small model with a tokenizer for them."""

from __future__ import annotations

import random
from typing import Any

import tokenizers
import torch
import transformers

WORDS = [f"w{i}" for i in range(56)]
ROLES = ["system", "user", "assistant"]
SPECIAL = ["<pad>", "<end>", "<unk>"]
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ' ' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}"
    "{{ message['content'] + ' <end> ' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + ' <end> ' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant ' }}{% endif %}"
)


def tokenizer() -> Any:
    numbers = {word: i for i, word in enumerate([*SPECIAL, *ROLES, *WORDS])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    found = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="<end>",
        unk_token="<unk>",
        model_max_length=64,
    )
    found.chat_template = TEMPLATE
    return found


def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(SPECIAL) + len(ROLES) + len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config)


def _words(drawn: random.Random) -> str:
    return " ".join(drawn.choices(WORDS, k=drawn.randint(3, 12)))


def messages(count: int = 60, seed: int = 5) -> list[dict[str, Any]]:
    drawn = random.Random(seed)
    found = []
    for _ in range(count):
        said = [{"role": role, "content": _words(drawn)} for role in ROLES[1:]]
        found.append({"messages": said})
    return found


def completions(count: int = 60, seed: int = 6) -> list[dict[str, Any]]:
    drawn = random.Random(seed)
    found = []
    for _ in range(count):
        found.append({"prompt": f"{_words(drawn)} ", "completion": _words(drawn)})
    return found


def text(lines: int = 200) -> str:
    drawn = random.Random(7)
    return "".join(f"{_words(drawn)}\n" for _ in range(lines))


def save(folder: str) -> None:
    model().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
