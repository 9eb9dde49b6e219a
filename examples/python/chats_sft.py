"""A program for TRL's SFTTrainer with another import: a model learns chats.

    python examples/python/chats_sft.py --model_name_or_path FOLDER \
        --dataset_name CHATS.jsonl --output_dir OUT --max_steps 20 --use_cpu

A line of CHATS.jsonl is {"messages": [{"role": "user", "content": "..."}, ...]}, or has
"prompt" and "completion". Further options are those of SFTConfig, and --use_peft trains
LoRA.
"""

from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import ModelConfig, ScriptArguments, TrlParser, get_peft_config

from tranche.hf import SFTConfig, SFTTrainer

parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
script, training, options = parser.parse_args_and_config()

tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path)
model = AutoModelForCausalLM.from_pretrained(
    options.model_name_or_path, dtype=options.dtype or "float32"
)
chats = load_dataset("json", data_files=script.dataset_name, split="train")
parts = chats.train_test_split(test_size=0.1, seed=training.seed)

trainer = SFTTrainer(
    model=model,
    args=training,
    train_dataset=parts["train"],
    eval_dataset=parts["test"] if training.eval_strategy != "no" else None,
    processing_class=tokenizer,
    peft_config=get_peft_config(options),
)
trainer.train(resume_from_checkpoint=training.resume_from_checkpoint)
trainer.save_model()
trainer.save_state()
