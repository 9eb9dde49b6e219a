// What the keys that DeepSpeed has, too, mean there (as of version 0.19), for who comes
// from it. Keys without an effect are told as such, and need no row; keys without a row
// are Tranche's own.
#include "run/keys/beside_deepspeed.h"

#include <string.h>

#define SAME "same"

typedef struct row {
    const char *path;
    const char *type; // of the key with this one in its `where`; NULL: of all
    const char *text;
} row;

static const char hugging_face[] = "differs: DeepSpeed has no such scheduler; the key "
                                   "is the one of transformers";
static const char left_out_is_length[] =
    "differs: it may be left out, and is then the run's length";
static const char on_every_stage[] =
    "differs: it holds at every ZeRO stage; DeepSpeed ignores it at stage 0";
static const char in_out_folder[] =
    "differs: if it is left out, the files are in the out folder";

static const row rows[] = {
    {"train_batch_size", NULL,
     "differs: the micro-batch need not divide it; then the last one is short, unless "
     "gradient_accumulation_steps is given"},
    {"train_micro_batch_size_per_gpu", NULL, SAME},
    {"gradient_accumulation_steps", NULL, SAME},
    {"steps_per_print", NULL,
     "differs: it counts only where there is no terminal; if it is left out, lines "
     "come by time (log.every_seconds)"},
    {"dataloader_drop_last", NULL, SAME},

    {"optimizer.type", NULL,
     "differs: LARS is added, and the types of 1-bit and mu are refused"},
    {"optimizer.params.weight_decay", NULL, SAME},
    {"optimizer.params.lr", "LARS", NULL},
    {"optimizer.params.lr", NULL, SAME},
    {"optimizer.params.betas", "Lion",
     "differs: where the mean is 0, the parameter stays; DeepSpeed moves it by the "
     "rate"},
    {"optimizer.params.betas", NULL, SAME},
    {"optimizer.params.eps", "LARS", NULL},
    {"optimizer.params.eps", NULL, SAME},
    {"optimizer.params.bias_correction", NULL, SAME},
    {"optimizer.params.adam_w_mode", NULL, SAME},
    {"optimizer.params.max_coeff", NULL, SAME},
    {"optimizer.params.min_coeff", NULL, SAME},
    {"optimizer.params.momentum", "LARS", NULL},
    {"optimizer.params.momentum", NULL, SAME},
    {"optimizer.params.nesterov", "SGD", SAME},
    {"optimizer.params.dampening", NULL, SAME},
    {"optimizer.params.initial_accumulator_value", NULL, SAME},
    {"optimizer.params.lr_decay", NULL, SAME},
    {"optimizer.params.muon_lr", NULL, SAME},
    {"optimizer.params.adam_lr", NULL, SAME},
    {"gradient_clipping", NULL,
     "same as in DeepSpeed 0.19; older versions do not clip if it is left out"},

    {"scheduler.type", NULL,
     "differs: \"constant\", and three of transformers, are added"},
    {"scheduler.params.warmup_min_lr", NULL, SAME},
    {"scheduler.params.warmup_max_lr", NULL, SAME},
    {"scheduler.params.warmup_num_steps", "linear", hugging_face},
    {"scheduler.params.warmup_num_steps", NULL, SAME},
    {"scheduler.params.warmup_type", NULL, SAME},
    {"scheduler.params.total_num_steps", NULL, left_out_is_length},
    {"scheduler.params.warmup_min_ratio", NULL, SAME},
    {"scheduler.params.cos_min_ratio", NULL, SAME},
    {"scheduler.params.lr_range_test_min_lr", NULL, SAME},
    {"scheduler.params.lr_range_test_step_size", NULL, SAME},
    {"scheduler.params.lr_range_test_step_rate", NULL, SAME},
    {"scheduler.params.lr_range_test_staircase", NULL, SAME},
    {"scheduler.params.cycle_min_lr", NULL, SAME},
    {"scheduler.params.cycle_max_lr", NULL, SAME},
    {"scheduler.params.cycle_first_step_size", NULL, SAME},
    {"scheduler.params.cycle_second_step_size", NULL, SAME},
    {"scheduler.params.cycle_first_stair_count", NULL, SAME},
    {"scheduler.params.cycle_second_stair_count", NULL, SAME},
    {"scheduler.params.decay_step_size", NULL, SAME},
    {"scheduler.params.decay_lr_rate", NULL, SAME},
    {"scheduler.params.cycle_momentum", NULL, SAME},
    {"scheduler.params.cycle_min_mom", NULL, SAME},
    {"scheduler.params.cycle_max_mom", NULL, SAME},
    {"scheduler.params.decay_mom_rate", NULL,
     "differs: beta1 stays below 1; DeepSpeed lets it pass 1"},

    {"fp16.enabled", NULL, SAME},
    {"fp16.loss_scale", NULL, SAME},
    {"fp16.initial_scale_power", NULL, SAME},
    {"fp16.loss_scale_window", NULL, SAME},
    {"fp16.hysteresis", NULL, on_every_stage},
    {"fp16.consecutive_hysteresis", NULL, SAME},
    {"fp16.min_loss_scale", NULL, on_every_stage},
    {"bf16.enabled", NULL, SAME},
    {"bfloat16.enabled", NULL, SAME},
    {"data_types.grad_accum_dtype", NULL,
     "differs: gradients are summed in fp32 unless another type is named here"},

    {"zero_optimization.stage", NULL,
     "differs: ranks reduce gradients, and at stage 3 gather parameters, once a wave; "
     "DeepSpeed does so for every micro-batch"},
    {"zero_optimization.overlap_comm", NULL,
     "differs: it is on at every stage; in DeepSpeed only at stage 3"},
    {"zero_optimization.offload_optimizer.device", NULL, SAME},
    {"zero_optimization.offload_optimizer.nvme_path", NULL, SAME},
    {"zero_optimization.offload_optimizer.ratio", NULL,
     "differs: whole units stay on the device, so that a larger share may leave it"},
    {"zero_optimization.offload_param.device", NULL,
     "differs: on one rank it needs no stage 3"},
    {"zero_optimization.offload_param.nvme_path", NULL, SAME},
    {"zero_optimization.cpu_offload", NULL, SAME},
    {"zero_optimization.cpu_offload_params", NULL, SAME},
    {"zero_optimization.cpu_offload_param", NULL, SAME},
    {"activation_checkpointing.number_checkpoints", NULL,
     "differs: it says how many units are recomputed; in DeepSpeed the model's code "
     "says that"},
    {"activation_checkpointing.cpu_checkpointing", NULL, SAME},
    {"tensor_parallel.autotp_size", NULL, SAME},
    {"pipeline.stages", NULL,
     "differs: it cuts the model; in DeepSpeed the program does (PipelineModule)"},

    {"csv_monitor.enabled", NULL, SAME},
    {"csv_monitor.output_path", NULL, in_out_folder},
    {"csv_monitor.job_name", NULL, SAME},
    {"tensorboard.enabled", NULL, SAME},
    {"tensorboard.output_path", NULL, in_out_folder},
    {"tensorboard.job_name", NULL, SAME},
};

static bool is_of(const row *r, const tr_key *key) {
    bool found = strcmp(r->path, key->path) == 0 && !r->type;
    if (strcmp(r->path, key->path) == 0 && r->type && key->where) {
        for (size_t i = 0; key->where[i] && !found; i++) {
            found = strcmp(key->where[i], r->type) == 0;
        }
    }
    return found;
}

const char *tr__key_beside_deepspeed(const tr_key *key) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (is_of(&rows[i], key)) {
            return rows[i].text;
        }
    }
    return NULL;
}

const char *tr__key_beside_deepspeed_path(size_t index) {
    return index < sizeof rows / sizeof *rows ? rows[index].path : NULL;
}
