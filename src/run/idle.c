// What the user has given and nothing obeys: keys that Tranche ignores, and keys that
// do something only beside others. Each is told once, by name, with its reason.
#include "base/log.h"
#include "ops/optimizer_settings.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

// ---- ignored keys

enum { LINE_BYTES = 512, COLUMNS = 110 };

// A list "a, b, c", in several lines where it is long.
static void say_list(const tr_run *run, const char *list) {
    char line[LINE_BYTES] = "ignored (no effect in Tranche):";
    while (*list) {
        int length = (int)strcspn(list, ",");
        bool last = list[length] == '\0';
        size_t used = strlen(line);
        if (used + (size_t)length > COLUMNS) {
            tr__note(&run->log, "%s", line);
            used = (size_t)snprintf(line, sizeof line, "   ");
        }
        snprintf(line + used, sizeof line - used, " %.*s%s", length, list,
                 last ? "" : ",");
        list += last ? length : length + 2;
    }
    tr__note(&run->log, "%s", line);
}

void tr__run_say_ignored(const tr_run *run) {
    const char *list = tr__config_no_meaning(run->config);
    const tr_key *key;
    if (list) {
        say_list(run, list);
    }
    for (size_t i = 0; (key = tr__config_unmet(run->config, i)) != NULL; i++) {
        tr__warn(&run->log, "%s is true, which has no effect in Tranche: %s", key->path,
                 key->doc);
    }
}

// ---- keys that need others

static bool is_said(const tr_run *run, const char *key) {
    tr_origin origin = tr__config_origin(run->config, key);
    return tr__config_is_given(run->config, key) &&
           !tr__config_is_auto(run->config, key) && origin != TR_ORIGIN_AUTO &&
           origin != TR_ORIGIN_DERIVED;
}

static bool no_evaluation(const tr_run *run) {
    return run->has_data && !run->validation;
}

static bool no_guard(const tr_run *run) {
    return run->settings.guard.action == TR_GUARD_NONE;
}

static bool no_rollback(const tr_run *run) {
    return run->settings.guard.action != TR_GUARD_ROLLBACK;
}

static bool no_scaling(const tr_run *run) {
    return run->settings.scaling.rule == TR_SCALING_NONE;
}

static bool no_noise(const tr_run *run) {
    return run->request.measure == TR_MEASURE_NEVER;
}

static bool is_chosen(const tr_run *run, tr_dimension_name d) {
    return run->chosen >> d & 1;
}

static bool no_nvme(const tr_run *run) {
    const tr_plan_request *r = &run->request;
    return r->optimizer_home != TR_SPACE_NVME && r->param_home != TR_SPACE_NVME &&
           !is_chosen(run, TR_DIMENSION_optimizer_home) &&
           !is_chosen(run, TR_DIMENSION_param_home);
}

static bool state_on_device(const tr_run *run) {
    return run->request.optimizer_home == TR_SPACE_DEVICE &&
           !is_chosen(run, TR_DIMENSION_optimizer_home);
}

static bool nothing_recomputed(const tr_run *run) {
    return run->request.recomputed_units == 0 &&
           tr__config_bool(run->config, "activation_checkpointing.cpu_checkpointing");
}

static bool first_units_of_nothing(const tr_run *run) {
    const tr_plan_request *r = &run->request;
    int64_t first = tr__config_int(run->config, "execution.recompute_units");
    bool ops = r->recomputed_ops != TR_RECOMPUTE_NOTHING && r->recomputed_ops_units > 0;
    return first > 0 && !ops && r->recomputed_units != first;
}

static bool no_schedule(const tr_run *run) {
    return run->settings.schedule.kind == TR_SCHEDULE_CONSTANT;
}

static bool prints_by_steps(const tr_run *run) {
    return run->settings.log_steps > 0;
}

static bool no_decay(const tr_run *run) {
    return run->settings.schedule.decay_size == 0;
}

static bool no_decay_rates(const tr_run *run) {
    const tr_schedule *s = &run->settings.schedule;
    return s->decay_lr == 0 && (s->decay_momentum == 0 || !s->cycle_momentum);
}

static bool no_betas(const tr_run *run) {
    return !run->settings.optimizer->has_betas;
}

static bool no_cycle_of_betas(const tr_run *run) {
    return !run->settings.schedule.cycle_momentum || no_betas(run);
}

static bool fixed_scale(const tr_run *run) {
    return run->request.compute == TR_F16 && !run->settings.scale.dynamic;
}

// The schedule goes from rate to rate by numbers of its own.
static bool own_rates(const tr_run *run) {
    const tr_schedule *s = &run->settings.schedule;
    double lr = tr__config_number(run->config, "optimizer.params.lr");
    bool warmup = s->kind == TR_SCHEDULE_WARMUP || s->kind == TR_SCHEDULE_WARMUP_DECAY;
    bool cycle = s->kind == TR_SCHEDULE_ONE_CYCLE;
    return s->kind == TR_SCHEDULE_RANGE_TEST ||
           ((warmup || cycle) && !s->max_is_own && s->max_lr != lr);
}

// Without a line where `idle` is false, or where the user has not given the key.
typedef struct rule {
    const char *key;
    bool (*idle)(const tr_run *run);
    const char *why;
} rule;

#define NO_GUARD    no_guard, "spike_guard.action is \"none\""
#define NO_ROLLBACK no_rollback, "spike_guard.action is not \"rollback\""
#define NO_NVME     no_nvme, "nothing lives on NVMe"
#define FIXED       fixed_scale, "fp16.loss_scale is fixed"
#define NO_CYCLE                                                                       \
    no_cycle_of_betas,                                                                 \
        "it is for an optimizer's betas, with scheduler.params.cycle_momentum"
#define ZERO  "zero_optimization."
#define SCHED "scheduler.params."

static const rule rules[] = {
    {"evaluation.every", no_evaluation,
     "there is no data.validation, so nothing is evaluated"},
    {"evaluation.samples", no_evaluation,
     "there is no data.validation, so nothing is evaluated"},
    {"log.every_seconds", prints_by_steps, "steps_per_print takes its place"},
    {"execution.recompute_units", first_units_of_nothing,
     "execution.recompute does not make anything again in those units, or "
     "activation_checkpointing.number_checkpoints says how many"},
    {"memory.nvme.path", NO_NVME},
    {"memory.nvme.bytes", NO_NVME},
    {ZERO "offload_optimizer.nvme_path", NO_NVME},
    {ZERO "offload_param.nvme_path", NO_NVME},
    {ZERO "offload_optimizer.ratio", state_on_device,
     "zero_optimization.offload_optimizer.device is \"none\""},
    {"activation_checkpointing.cpu_checkpointing", nothing_recomputed,
     "no unit is recomputed; set activation_checkpointing.number_checkpoints"},
    {"optimizer.params.lr", own_rates,
     "the scheduler goes by rates of its own (scheduler.params)"},
    {"scheduler.unit", no_schedule, "scheduler.type is \"constant\""},
    {SCHED "decay_lr_rate", no_decay, "scheduler.params.decay_step_size is 0"},
    {SCHED "decay_mom_rate", no_decay, "scheduler.params.decay_step_size is 0"},
    {SCHED "decay_step_size", no_decay_rates,
     "scheduler.params.decay_lr_rate and decay_mom_rate are 0"},
    {SCHED "cycle_momentum", no_betas, "the optimizer has no betas"},
    {SCHED "cycle_min_mom", NO_CYCLE},
    {SCHED "cycle_max_mom", NO_CYCLE},
    {"batch_scaling.reference_batch", no_scaling, "batch_scaling.rule is \"none\""},
    {"noise_scale.smoothing", no_noise, "noise_scale.measure is false"},
    {"spike_guard.threshold", NO_GUARD},
    {"spike_guard.window", NO_GUARD},
    {"spike_guard.after", NO_GUARD},
    {"spike_guard.limit", NO_GUARD},
    {"spike_guard.forgive_steps", NO_GUARD},
    {"spike_guard.rate_factor", NO_ROLLBACK},
    {"spike_guard.warmup_steps", NO_ROLLBACK},
    {"fp16.initial_scale_power", FIXED},
    {"fp16.loss_scale_window", FIXED},
    {"fp16.hysteresis", FIXED},
    {"fp16.consecutive_hysteresis", FIXED},
    {"fp16.min_loss_scale", FIXED},
};

static void say_idle(const tr_run *run, const char *key, const char *why) {
    tr__warn(&run->log, "%s has no effect: %s", key, why);
}

void tr__run_say_idle(const tr_run *run) {
    const tr_optimizer_settings *optimizer =
        tr__optimizer_settings_find(tr__config_text(run->config, "optimizer.type"));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const rule *r = &rules[i];
        if (is_said(run, r->key) && r->idle(run)) {
            say_idle(run, r->key, r->why);
        }
    }
    for (const tr_optimizer_idle *r = optimizer->idle; r && r->key; r++) {
        if (is_said(run, r->key) && r->idle(run->config)) {
            say_idle(run, r->key, r->why);
        }
    }
}
