#ifndef TR_KEY_PLACES_H
#define TR_KEY_PLACES_H

#include <stddef.h>

enum { SETS_MAX = 12 };

// Where a key has a use: what else is set, and the value, if no plain one would do.
typedef struct place {
    const char *path, *value;
    const char *with[SETS_MAX];
} place;

#define ZERO  "zero_optimization."
#define SCHED "scheduler.params."
#define GUARD                                                                          \
    { "spike_guard.action=rollback" }
#define IMAGES                                                                         \
    {                                                                                  \
        "data.format=npy", "data.train=images.npy", "data.labels=labels.npy",          \
            "model={\"model_type\": \"resnet\", \"depth\": 8, \"image_size\": 8, "     \
            "\"num_channels\": 8, \"num_labels\": 2}"                                  \
    }
#define ROWS                                                                           \
    {                                                                                  \
        "data.format=npy", "data.train=images.npy", "data.labels=labels.npy",          \
            "model={\"model_type\": \"mlp\", \"layer_sizes\": [512, 4, 2]}"            \
    }
#define TABLE(format)                                                                  \
    {                                                                                  \
        "data.format=" format, "data.train=table.csv",                                 \
            "model={\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}"              \
    }
#define RANDOM(a, b)                                                                   \
    {                                                                                  \
        "data.format=random", "data.train=null", (a), (b),                             \
            "model={\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}"              \
    }
#define TOKENIZERS TR_TEST_DATA "/tokenizers/"
#define PROSE                                                                          \
    {                                                                                  \
        "data.format=text", "data.train=[\"prose\", \"more\"]",                        \
            "data.tokenizer=" TOKENIZERS "gpt2.json", "data.eos_token=<|end|>"         \
    }
#define RECORDS(file)                                                                  \
    {                                                                                  \
        "data.format=jsonl", "data.train=" file, "data.chat_template=roles.jinja",     \
            "data.tokenizer=" TOKENIZERS "gpt2.json", "data.eos_token=<|end|>"         \
    }
#define DATED                                                                          \
    {                                                                                  \
        "data.format=jsonl", "data.train=chats.jsonl",                                 \
            "data.chat_template=dated.jinja", "data.date=2026-11-21",                  \
            "data.tokenizer=" TOKENIZERS "gpt2.json"                                   \
    }
#define BERT(task)                                                                     \
    {                                                                                  \
        "data.format=jsonl", "data.train=labelled.jsonl", "task=" task,                \
            "data.max_length=16",                                                      \
            "data.tokenizer=" TR_TEST_DATA "/encoders/bert/tokenizer.json",            \
            "model={\"model_type\": \"bert\", \"hidden_size\": 8, "                    \
            "\"num_attention_heads\": 2, \"num_hidden_layers\": 1, "                   \
            "\"intermediate_size\": 8, \"vocab_size\": 150}"                           \
    }
#define CYCLE                                                                          \
    "scheduler.type=OneCycle", SCHED "cycle_min_lr=0.1", SCHED "cycle_max_lr=0.2"
#define NVME "memory.nvme.path=/tmp", ZERO "offload_optimizer.device=nvme"

#define ADAPTIVE                                                                       \
    { "adaptive_batch.enabled=true", "adaptive_batch.most=24" }
#define BASE TR_TEST_DATA "/adapters/llama/"
#define ADAPTED                                                                        \
    { "model=" BASE "base", "adapter.type=lora" }

static const place places[] = {
    {"adapter.path", BASE "adapter", {"model=" BASE "base"}},
    {"adapter.type", "lora", {"model=" BASE "base"}},
    {"adapter.r", "3", ADAPTED},
    {"adapter.lora_alpha", "3", ADAPTED},
    {"adapter.lora_dropout", "0.5", ADAPTED},
    {"adapter.target_modules", "[\"k_proj\"]", ADAPTED},
    {"adapter.use_rslora", "true", ADAPTED},
    {"adapter.use_dora", "true", ADAPTED},
    {"adapter.modules_to_save", "[\"lm_head\"]", ADAPTED},
    {"quantization.base", "q8_0", ADAPTED},
    {"quantization.double",
     "true",
     {"model=" BASE "base", "adapter.type=lora", "quantization.base=nf4"}},
    {"model", "gpt2", {0}},
    {"tensor_parallel.size", "2", {"ranks=2", "plan_only=true"}},
    {"tensor_parallel.sequence",
     "true",
     {"ranks=2", "tensor_parallel.size=2", "plan_only=true"}},
    {"tensor_parallel.autotp_size", "2", {"ranks=2", "plan_only=true"}},
    {"execution.alternating",
     "2",
     {"ranks=2", "tensor_parallel.size=2", "execution.wave=2", "plan_only=true"}},
    {"pipeline.stages", "2", {"ranks=2", "plan_only=true"}},
    {"pipeline.schedule",
     "breadth_first",
     {"ranks=2", "pipeline.stages=2", "plan_only=true"}},
    {"pipeline.virtual_stages",
     "2",
     {"ranks=2", "pipeline.stages=2", "plan_only=true"}},
    {"epochs", "3", {"steps=null"}},
    {"csv_monitor.output_path", "a", {"csv_monitor.enabled=true"}},
    {"csv_monitor.job_name", "a", {"csv_monitor.enabled=true"}},
    {"tensorboard.output_path", "a", {"tensorboard.enabled=true"}},
    {"tensorboard.job_name", "a", {"tensorboard.enabled=true"}},
    {"out", "elsewhere", {0}},
    {"device", "cuda", {0}},
    {"execution.attention", "own", {"device=cuda", "bf16.enabled=true"}},
    {"gradient_accumulation_steps", "3", {"train_batch_size=null"}},
    {"evaluation.every", NULL, {"data.validation=0.2"}},
    {"evaluation.samples", NULL, {"data.validation=0.2"}},
    {"execution.recompute", "unit", {0}},
    {"execution.f32_logits",
     "true",
     {"device=cuda", "plan_only=true", "bf16.enabled=true"}},
    {"execution.logits_mib", "2", {"device=cuda", "plan_only=true"}},
    {"execution.parts_on_device", "true", {"device=cuda", "plan_only=true"}},
    {"fp8.fast_accumulation",
     "true",
     {"device=cuda", "plan_only=true", "fp8.enabled=true"}},
    {"memory.device", "1GiB", {"memory.host=1GiB"}},
    {"memory.process", "1GiB", {0}},
    {"memory.nvme.path", "/tmp", {ZERO "offload_optimizer.device=nvme"}},
    {"memory.nvme.bytes", "1GiB", {NVME}},
    {"memory.nvme.gradients", "true", {NVME}},
    {"data.train", "[\"text\", \"more\"]", {0}},
    {"data.validation", "0.2", {0}},
    {"data.max_length", "3", {0}},
    {"data.tokenizer", TOKENIZERS "llama3.json", PROSE},
    {"data.document_separator", "two", PROSE},
    {"data.eos_token", "a", PROSE},
    {"data.packing", "true", PROSE},
    {"data.loss_on", "all", RECORDS("completions.jsonl")},
    {"data.chat_template", "contents.jinja", RECORDS("chats.jsonl")},
    {"data.date", "2026-11-22", DATED},
    {"data.fields.text", "other", RECORDS("texts.jsonl")},
    {"data.fields.prompt", "other", RECORDS("completions.jsonl")},
    {"data.fields.completion", "other", RECORDS("completions.jsonl")},
    {"data.fields.messages", "other", RECORDS("chats.jsonl")},
    {"task", "classification", BERT("masked_lm")},
    {"data.fields.text_pair", "other", BERT("classification")},
    {"data.fields.label", "mood", BERT("classification")},
    {"data.fields.anchor", "other", BERT("contrastive")},
    {"data.fields.positive", "other", BERT("contrastive")},
    {"data.fields.negative", "other", BERT("contrastive")},
    {"pooling", "cls", BERT("contrastive")},
    {"contrastive.temperature", "0.5", BERT("contrastive")},
    {"contrastive.learned", "true", BERT("contrastive")},
    {"contrastive.symmetric", "false", BERT("contrastive")},
    {"contrastive.duplicates", "mask", BERT("contrastive")},
    {"contrastive.passes", "2", BERT("contrastive")},
    {"mlm.probability", "0.5", BERT("masked_lm")},
    {"mlm.mask", "0.5", BERT("masked_lm")},
    {"mlm.random", "0.2", BERT("masked_lm")},
    {"mlm.whole_words", "true", BERT("masked_lm")},
    {"mlm.next_sentence", "true", BERT("masked_lm")},
    {"data.plain_special", "true", PROSE},
    {"data.dtype", "u32", {"data.format=tokens", "data.train=wide.bin"}},
    {"data.labels", "labels.bin", {"data.format=tokens", "data.train=ids.bin"}},
    {"data.validation_labels",
     "labels.bin",
     {"data.format=tokens", "data.train=ids.bin", "data.labels=labels.bin",
      "data.validation=ids.bin"}},
    {"data.header", "true", TABLE("csv")},
    {"data.label_column", "0", TABLE("csv")},
    {"data.samples", "30", RANDOM("data.features=2", "data.classes=3")},
    {"data.features", "2", RANDOM("data.samples=20", "data.classes=3")},
    {"data.classes", "3", RANDOM("data.samples=20", "data.features=2")},
    {"data.image_layout", "channels_last", IMAGES},
    {"data.image_mean", "0.25", IMAGES},
    {"data.image_std", "0.25", IMAGES},
    {"optimizer.params.betas", "[0.5, 0.6]", {0}},
    {"optimizer.params.adam_w_mode", "false", {"optimizer.type=Adam"}},
    {"optimizer.params.dampening",
     NULL,
     {"optimizer.type=SGD", "optimizer.params.momentum=0.5"}},
    {"optimizer.params.nesterov",
     "true",
     {"optimizer.type=SGD", "optimizer.params.momentum=0.5"}},
    {"optimizer.groups", "[{\"match\": \"*.bias\", \"lr\": 3}]", {0}},
    {"freeze", "*.bias", {0}},
    {"scheduler.unit", NULL, {"scheduler.type=WarmupLR"}},
    {SCHED "warmup_max_lr", "0.3", {"scheduler.type=WarmupLR"}},
    {SCHED "cycle_min_lr", "0.1", {CYCLE, SCHED "cycle_min_lr=0.15"}},
    {SCHED "cycle_max_lr", "0.3", {CYCLE}},
    {SCHED "decay_lr_rate", NULL, {CYCLE, SCHED "decay_step_size=10"}},
    {SCHED "decay_mom_rate", NULL, {CYCLE, SCHED "decay_step_size=10"}},
    {SCHED "decay_step_size", NULL, {CYCLE, SCHED "decay_lr_rate=0.1"}},
    {SCHED "cycle_first_step_size", NULL, {CYCLE}},
    {SCHED "cycle_second_step_size", "5", {CYCLE}},
    {SCHED "cycle_first_stair_count", NULL, {CYCLE}},
    {SCHED "cycle_second_stair_count", "5", {CYCLE}},
    {SCHED "cycle_momentum", NULL, {CYCLE}},
    {SCHED "cycle_min_mom", NULL, {CYCLE}},
    {SCHED "cycle_max_mom", NULL, {CYCLE}},
    {"batch_scaling.rule", "linear", {"batch_scaling.reference_batch=6"}},
    {"batch_scaling.reference_batch", "6", {"batch_scaling.rule=linear"}},
    {"batch_schedule", "[[10, 24]]", {0}},
    {"adaptive_batch.enabled", "true", {"adaptive_batch.most=24"}},
    {"adaptive_batch.least", "6", ADAPTIVE},
    {"adaptive_batch.most", "36", ADAPTIVE},
    {"adaptive_batch.every", "5", ADAPTIVE},
    {"adaptive_batch.share", "2", ADAPTIVE},
    {"spike_guard.threshold", NULL, GUARD},
    {"spike_guard.window", NULL, GUARD},
    {"spike_guard.after", NULL, GUARD},
    {"spike_guard.rate_factor", NULL, GUARD},
    {"spike_guard.warmup_steps", NULL, GUARD},
    {"spike_guard.limit", NULL, GUARD},
    {"spike_guard.forgive_steps", NULL, GUARD},
    {"data_types.grad_accum_dtype", "bf16", {0}},
    {ZERO "offload_optimizer.device", "cpu", {0}},
    {ZERO "offload_optimizer.nvme_path",
     "/tmp",
     {ZERO "offload_optimizer.device=nvme"}},
    {ZERO "offload_optimizer.ratio", "0.5", {ZERO "offload_optimizer.device=cpu"}},
    {ZERO "offload_param.device", "cpu", {0}},
    {ZERO "offload_param.nvme_path",
     "/tmp",
     {ZERO "offload_param.device=nvme", ZERO "offload_optimizer.device=cpu"}},
};

#endif
