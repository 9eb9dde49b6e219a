// What a run needs and nobody has said: all of it is asked for at once, each by the key
// and the option that give it.
#include "base/problems.h"
#include "run/run.h"

#include <string.h>

static bool is_missing(const tr_run *run, const char *key) {
    return !tr__config_is_set(run->config, key) || tr__config_is_auto(run->config, key);
}

static bool is_auto(const tr_run *run, const char *key) {
    return tr__config_is_auto(run->config, key);
}

static void ask_model(const tr_run *run, tr_problems *problems) {
    tr_error err = {0};
    if (!run->given.parts.model && is_missing(run, "model")) {
        tr_fail(
            &err, TR_USAGE,
            "the run file has no \"model\": give a name (\"gpt2\"), a folder, or an "
            "object such as {\"model_type\": \"gpt2\", ...}; or use --model");
        tr__problems_add(problems, &err);
    }
}

static void ask_data(const tr_run *run, tr_problems *problems) {
    tr_error err = {0};
    if (!run->given.parts.train && !run->settings.plan_only &&
        !tr__run_names_data(run) && !tr__run_is_fed(run)) {
        tr_fail(&err, TR_USAGE,
                "there is no training data: give \"data\": {\"train\": [...]} in the "
                "run file, or --data PATH");
        tr__problems_add(problems, &err);
    }
}

// DeepSpeed's launchers fill these in from options of their own.
static void ask_batch(const tr_run *run, tr_problems *problems) {
    static const char *const total = "train_batch_size";
    static const char *const micro = "train_micro_batch_size_per_gpu";
    bool open = is_auto(run, total) || is_auto(run, micro);
    tr_error err = {0};
    if (is_missing(run, total) && is_missing(run, micro)) {
        tr_fail(&err, TR_USAGE,
                "%s: give %s (samples of one optimizer step) or %s (samples of one "
                "forward and backward), for example --set %s=8",
                open ? "the batch is \"auto\", which nothing decides here"
                     : "the run file has no batch size",
                total, micro, total);
        tr__problems_add(problems, &err);
    }
}

// Has the schedule rates of its own, whatever the optimizer's is?
static bool schedule_has_rates(const tr_config *config) {
    const char *type = tr__config_text(config, "scheduler.type");
    const char *warmup = "scheduler.params.warmup_max_lr";
    const char *cycle = "scheduler.params.cycle_max_lr";
    if (strcmp(type, "WarmupDecayLR") == 0) { // left out it is 0.001
        return !tr__config_is_auto(config, warmup);
    }
    return strcmp(type, "LRRangeTest") == 0 ||
           (strcmp(type, "WarmupLR") == 0 && tr__config_is_said(config, warmup)) ||
           (strcmp(type, "OneCycle") == 0 && tr__config_is_said(config, cycle));
}

// Hugging Face's Trainer fills it in from an option of its own, whose default is not
// DeepSpeed's.
static void ask_rate(const tr_run *run, tr_problems *problems) {
    static const char *const key = "optimizer.params.lr";
    tr_error err = {0};
    if (!run->settings.plan_only && is_auto(run, key) &&
        !schedule_has_rates(run->config)) {
        tr_fail(&err, TR_USAGE,
                "%s is \"auto\", which nothing decides here (transformers puts its "
                "learning_rate there, 5e-5 if nobody says more): give the number, for "
                "example --set %s=5e-5",
                key, key);
        tr__problems_add(problems, &err);
    }
}

static void ask_length(const tr_run *run, tr_problems *problems) {
    tr_error err = {0};
    if (!run->settings.plan_only && is_missing(run, "steps") &&
        is_missing(run, "epochs")) {
        tr_fail(&err, TR_USAGE,
                "neither \"steps\" nor \"epochs\" is given: say how long to train, or "
                "use --steps");
        tr__problems_add(problems, &err);
    }
}

void tr__run_ask_data(const tr_run *run, tr_problems *problems) {
    ask_model(run, problems);
    ask_data(run, problems);
}

void tr__run_ask(const tr_run *run, tr_problems *problems) {
    tr__run_ask_data(run, problems);
    ask_batch(run, problems);
    ask_rate(run, problems);
    ask_length(run, problems);
}
