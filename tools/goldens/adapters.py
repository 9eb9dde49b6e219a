"""Writes tests/data/adapters. Needs torch, transformers and peft:

    python tools/goldens/adapters.py [FOLDER]

For a llama with grouped heads and a gpt2 with biases, each with LoRA and with DoRA: a
small random base, an adapter that PEFT has drawn (init_lora_weights=False, so that it
does something; magnitudes are not those that PEFT begins with), a text of bytes, and
golden.json: the losses of 20 steps of AdamW in float64 on sequences of 32 bytes, 8 a
step, in their order; and of each tensor of the base with the adapter merged into it,
before these steps, the sum and the sum of squares.
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

STEPS, BATCH, LENGTH = 20, 8, 32

LLAMA = transformers.LlamaConfig(
    vocab_size=256, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    bos_token_id=None, eos_token_id=None, tie_word_embeddings=False)
GPT2 = transformers.GPT2Config(
    vocab_size=256, n_embd=20, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0,
    embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None)

MODELS = {
    "llama": (
        LLAMA,
        dict(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj", "up_proj", "down_proj"],
             modules_to_save=["lm_head"])),
    "gpt2": (
        GPT2,
        dict(r=4, lora_alpha=8, use_rslora=True, target_modules=["c_attn", "c_fc"])),
    "llama-dora": (
        LLAMA,
        dict(r=3, lora_alpha=5, use_dora=True,
             target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "up_proj"])),
    "gpt2-dora": (
        GPT2,
        dict(r=4, lora_alpha=8, use_dora=True, target_modules=["c_attn", "c_proj"])),
}


def text():
    generator = torch.Generator().manual_seed(5)
    words = [bytes(torch.randint(97, 123, (n,), generator=generator).tolist())
             for n in torch.randint(1, 8, (40,), generator=generator).tolist()]
    out = b""
    while len(out) < STEPS * BATCH * LENGTH + 1:
        out += words[torch.randint(0, 40, (1,), generator=generator).item()] + b" "
    return out[: STEPS * BATCH * LENGTH + 1]


def losses(model, data):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, eps=1e-6, weight_decay=0.01)
    told = []
    for step in range(STEPS):
        first = step * BATCH * LENGTH
        ids = data[first : first + BATCH * LENGTH].reshape(BATCH, LENGTH)
        labels = data[first + 1 : first + BATCH * LENGTH + 1]
        logits = model(input_ids=ids).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 256), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        told.append(loss.item())
    return told


def write(folder, config, adapter):
    for part in "base", "adapter":  # a run.json beside them stays
        shutil.rmtree(folder / part, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    base = transformers.AutoModelForCausalLM.from_config(config)
    base.save_pretrained(folder / "base")
    (folder / "base" / "generation_config.json").unlink(missing_ok=True)
    lora = LoraConfig(init_lora_weights=False, task_type="CAUSAL_LM", **adapter)
    model = get_peft_model(base, lora)
    for name, tensor in model.named_parameters():
        if "lora_magnitude_vector" in name:
            tensor.data *= 1 + 0.2 * torch.rand_like(tensor)
    model.save_pretrained(folder / "adapter")
    for path in folder.glob("adapter/README*"):
        path.unlink()
    (folder / "text.bin").write_bytes(text())

    def load(train):
        fresh = transformers.AutoModelForCausalLM.from_pretrained(
            folder / "base", dtype=torch.float64)
        return PeftModel.from_pretrained(
            fresh, folder / "adapter", is_trainable=train, autocast_adapter_dtype=False)

    merged = load(False).merge_and_unload().state_dict()
    sums = {name: [t.sum().item(), (t * t).sum().item()] for name, t in merged.items()}
    if config.tie_word_embeddings:
        del sums["lm_head.weight"]
    model = load(True).double().train()
    golden = {"losses": losses(model, torch.tensor(list(text()))), "merged": sums}
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    config_path = folder / "adapter" / "adapter_config.json"
    keys = json.loads(config_path.read_text())
    keys["base_model_name_or_path"] = "base"  # tests name the base themselves
    config_path.write_text(json.dumps(keys, indent=1) + "\n")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/adapters")
    for name, (config, adapter) in MODELS.items():
        write(root / name, config, adapter)


if __name__ == "__main__":
    main()
