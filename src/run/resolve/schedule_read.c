#include "run/resolve/schedule_read.h"

#include <math.h>
#include <string.h>

#define PARAMS "scheduler.params."

// WarmupDecayLR's default, whatever the optimizer's rate is; the key itself has none,
// so that "auto" can stand for something else.
static const double decay_max_lr = 0.001;
static const double auto_warmup_share = 0.1;
enum { AUTO_WARMUP_MAX = 1000 }; // DeepSpeed's default

static tr_schedule_kind read_kind(const tr_config *config) {
    static const struct {
        const char *name;
        tr_schedule_kind kind;
    } kinds[] = {{"WarmupLR", TR_SCHEDULE_WARMUP},
                 {"WarmupDecayLR", TR_SCHEDULE_WARMUP_DECAY},
                 {"WarmupCosineLR", TR_SCHEDULE_WARMUP_COSINE},
                 {"LRRangeTest", TR_SCHEDULE_RANGE_TEST},
                 {"OneCycle", TR_SCHEDULE_ONE_CYCLE},
                 {"constant_with_warmup", TR_SCHEDULE_CONSTANT_WITH_WARMUP},
                 {"linear", TR_SCHEDULE_LINEAR},
                 {"cosine", TR_SCHEDULE_COSINE}};
    const char *type = tr__config_text(config, "scheduler.type");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(type, kinds[i].name) == 0) {
            return kinds[i].kind;
        }
    }
    return TR_SCHEDULE_CONSTANT;
}

// The value of a key that may be "auto", in which case its default is taken.
static tr_status read_number(tr_config *config, const char *path, double *out,
                             tr_error *err) {
    *out = tr__config_number(config, path);
    if (!tr__config_is_auto(config, path)) {
        return TR_OK;
    }
    return tr__config_resolve_number(config, path, *out, TR_ORIGIN_AUTO, "its default",
                                     err);
}

// A rate that "auto" makes the optimizer's own.
static tr_status read_max(tr_config *config, const char *path, tr_schedule *s,
                          tr_error *err) {
    s->max_is_own = !tr__config_is_set(config, path);
    s->max_lr = tr__config_number(config, path);
    return tr__config_explain_auto(config, path, "each parameter group's own lr", err);
}

// The same in a warm-up, where it may be left out.
static tr_status read_warmup_max(tr_config *config, tr_schedule *s, tr_error *err) {
    const char *path = PARAMS "warmup_max_lr";
    if (s->kind == TR_SCHEDULE_WARMUP_DECAY && !tr__config_is_given(config, path)) {
        tr_status status = tr__config_resolve_number(config, path, decay_max_lr,
                                                     TR_ORIGIN_AUTO, "left out", err);
        if (status != TR_OK) {
            return status;
        }
    }
    return read_max(config, path, s, err);
}

static tr_status read_total(tr_config *config, tr_run_length length, tr_schedule *s,
                            tr_error *err) {
    const char *path = PARAMS "total_num_steps";
    if (!tr__config_is_set(config, path)) {
        if (length.run <= 0 && length.changes) {
            return tr_fail(
                err, TR_USAGE,
                "%s: this schedule needs it, or \"epochs\": the batch changes "
                "by the noise scale, so nobody knows how many samples the "
                "steps will have",
                path);
        }
        if (length.run <= 0) {
            return tr_fail(err, TR_USAGE,
                           "%s: this schedule needs it, or \"steps\" or \"epochs\"",
                           path);
        }
        tr_status status = tr__config_resolve_int(
            config, path, length.run, TR_ORIGIN_DERIVED,
            s->unit == TR_SCHEDULE_UPDATES ? "steps of the run" : "length of the run",
            err);
        if (status != TR_OK) {
            return status;
        }
    }
    s->total_steps = tr__config_int(config, path);
    return TR_OK;
}

static tr_status read_warmup_steps(tr_config *config, tr_run_length of, tr_schedule *s,
                                   tr_error *err) {
    const char *path = PARAMS "warmup_num_steps";
    if (tr__config_is_auto(config, path)) {
        int64_t length = (int64_t)((double)of.run * auto_warmup_share);
        int64_t most = AUTO_WARMUP_MAX * of.update;
        length = of.run <= 0 || length > most ? most : length;
        tr_status status =
            tr__config_resolve_int(config, path, length, TR_ORIGIN_AUTO,
                                   "a tenth of the run, at most 1000 steps", err);
        if (status != TR_OK) {
            return status;
        }
    }
    s->warmup_steps = tr__config_int(config, path);
    return TR_OK;
}

static tr_status read_warmup(tr_config *config, tr_run_length length, tr_schedule *s,
                             tr_error *err) {
    bool only = s->kind == TR_SCHEDULE_WARMUP,
         cosine = s->kind == TR_SCHEDULE_WARMUP_COSINE;
    s->linear = strcmp(tr__config_text(config, PARAMS "warmup_type"), "linear") == 0;
    tr_status status = read_warmup_steps(config, length, s, err);
    if (status == TR_OK && !only) {
        status = read_total(config, length, s, err);
    }
    if (status == TR_OK && cosine) {
        status = read_number(config, PARAMS "warmup_min_ratio", &s->min_ratio, err);
    }
    if (status == TR_OK && cosine) {
        status = read_number(config, PARAMS "cos_min_ratio", &s->end_ratio, err);
    }
    if (status == TR_OK && !cosine) {
        status = read_number(config, PARAMS "warmup_min_lr", &s->min_lr, err);
    }
    if (status == TR_OK && !cosine) {
        status = read_warmup_max(config, s, err);
    }
    return status;
}

// transformers' names of the warm-up, of which its versions have one or both:
// warmup_steps below 1 is a share, too. A share is rounded up, as there.
static tr_status read_warmup_share(tr_config *config, tr_run_length of, tr_schedule *s,
                                   tr_error *err) {
    double ratio = tr__config_number(config, PARAMS "warmup_ratio");
    double steps = tr__config_number(config, PARAMS "warmup_steps");
    double share = ratio > 0 ? ratio : steps < 1 ? steps : 0;
    int64_t total =
        s->kind == TR_SCHEDULE_CONSTANT_WITH_WARMUP ? of.run : s->total_steps;
    if ((ratio > 0) + (steps > 0) + (s->warmup_steps > 0) > 1) {
        return tr_fail(err, TR_USAGE,
                       PARAMS "warmup_num_steps, warmup_steps and warmup_ratio: two of "
                              "them are given; leave only one");
    }
    if (share > 0 && total <= 0) {
        return tr_fail(err, TR_USAGE,
                       PARAMS
                       "warmup_ratio: is a share of the run, whose length is not "
                       "known; give \"steps\" or \"epochs\", or " PARAMS
                       "warmup_num_steps");
    }
    if (share > 0) {
        s->warmup_steps = (int64_t)ceil((double)total * share);
    } else if (steps > 0) {
        s->warmup_steps = (int64_t)steps;
    }
    return TR_OK;
}

static tr_status read_hugging_face(tr_config *config, tr_run_length length,
                                   tr_schedule *s, tr_error *err) {
    tr_status status = read_warmup_steps(config, length, s, err);
    if (status == TR_OK && s->kind != TR_SCHEDULE_CONSTANT_WITH_WARMUP) {
        status = read_total(config, length, s, err);
    }
    if (status == TR_OK && s->kind == TR_SCHEDULE_COSINE) {
        s->cycles = tr__config_number(config, PARAMS "num_cycles");
    }
    return status == TR_OK ? read_warmup_share(config, length, s, err) : status;
}

static tr_status read_range_test(tr_config *config, tr_schedule *s, tr_error *err) {
    s->range_size = tr__config_int(config, PARAMS "lr_range_test_step_size");
    s->staircase = tr__config_bool(config, PARAMS "lr_range_test_staircase");
    tr_status status =
        read_number(config, PARAMS "lr_range_test_min_lr", &s->min_lr, err);
    if (status == TR_OK) {
        status =
            read_number(config, PARAMS "lr_range_test_step_rate", &s->range_rate, err);
    }
    return status;
}

// An integer that takes `otherwise` where nothing is said.
static int64_t read_int_or(const tr_config *config, const char *path,
                           int64_t otherwise) {
    return tr__config_is_set(config, path) ? tr__config_int(config, path) : otherwise;
}

static tr_status read_one_cycle(tr_config *config, tr_schedule *s, tr_error *err) {
    if (!tr__config_is_set(config, PARAMS "cycle_min_lr")) {
        return tr_fail(err, TR_USAGE, PARAMS "cycle_min_lr: OneCycle needs a number");
    }
    if (!tr__config_is_given(config, PARAMS "cycle_max_lr")) {
        return tr_fail(err, TR_USAGE, PARAMS "cycle_max_lr: OneCycle needs it");
    }
    s->min_lr = tr__config_number(config, PARAMS "cycle_min_lr");
    s->first_size = tr__config_int(config, PARAMS "cycle_first_step_size");
    s->second_size =
        read_int_or(config, PARAMS "cycle_second_step_size", s->first_size);
    s->first_stairs = tr__config_int(config, PARAMS "cycle_first_stair_count");
    s->second_stairs =
        read_int_or(config, PARAMS "cycle_second_stair_count", s->first_stairs);
    s->decay_size = tr__config_int(config, PARAMS "decay_step_size");
    s->cycle_momentum = tr__config_bool(config, PARAMS "cycle_momentum");
    s->min_momentum = tr__config_number(config, PARAMS "cycle_min_mom");
    s->max_momentum = tr__config_number(config, PARAMS "cycle_max_mom");
    tr_status status = read_max(config, PARAMS "cycle_max_lr", s, err);
    if (status == TR_OK) {
        status = read_number(config, PARAMS "decay_lr_rate", &s->decay_lr, err);
    }
    if (status == TR_OK) {
        status = read_number(config, PARAMS "decay_mom_rate", &s->decay_momentum, err);
    }
    return status;
}

tr_schedule_unit tr__schedule_read_unit(const tr_config *config) {
    const char *unit = tr__config_text(config, "scheduler.unit");
    return strcmp(unit, "samples") == 0  ? TR_SCHEDULE_SAMPLES
           : strcmp(unit, "tokens") == 0 ? TR_SCHEDULE_TOKENS
                                         : TR_SCHEDULE_UPDATES;
}

tr_status tr__schedule_read(tr_config *config, tr_run_length length, tr_schedule *out,
                            tr_error *err) {
    tr_schedule schedule = {.kind = read_kind(config),
                            .unit = tr__schedule_read_unit(config)};
    tr_status status = TR_OK;
    switch (schedule.kind) {
    case TR_SCHEDULE_CONSTANT:
        break;
    case TR_SCHEDULE_WARMUP:
    case TR_SCHEDULE_WARMUP_DECAY:
    case TR_SCHEDULE_WARMUP_COSINE:
        status = read_warmup(config, length, &schedule, err);
        break;
    case TR_SCHEDULE_RANGE_TEST:
        status = read_range_test(config, &schedule, err);
        break;
    case TR_SCHEDULE_ONE_CYCLE:
        status = read_one_cycle(config, &schedule, err);
        break;
    case TR_SCHEDULE_CONSTANT_WITH_WARMUP:
    case TR_SCHEDULE_LINEAR:
    case TR_SCHEDULE_COSINE:
        status = read_hugging_face(config, length, &schedule, err);
        break;
    }
    if (status == TR_OK) {
        *out = schedule;
    }
    return status;
}
