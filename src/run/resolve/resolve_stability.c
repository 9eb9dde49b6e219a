// What follows from the effective batch: the schedule in its unit, the rule by which
// rates follow, and the noise scale.
#include "base/checked.h"
#include "run/resolve/schedule_read.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the schedule

static int64_t at_most(int64_t a, int64_t b) {
    int64_t product = 0;
    return tr__mul_i64(a, b, &product) ? product : 0;
}

// Samples that the updates of the whole run take; 0: not known.
static int64_t samples_of(const tr_run *run) {
    const tr_settings *s = &run->settings;
    if (!run->train || s->steps <= 0) {
        return 0;
    }
    if (s->batches.adaptive) {
        return s->epochs > 0 ? at_most(s->epochs, run->batcher.samples) : 0;
    }
    return tr__batches_samples(&s->batches, &run->batcher, s->steps);
}

static const char *unit_name(tr_schedule_unit unit) {
    return unit == TR_SCHEDULE_SAMPLES  ? "samples"
           : unit == TR_SCHEDULE_TOKENS ? "tokens"
                                        : "updates";
}

// What the schedule does between its end and the last update of a run that goes on.
static void say_beyond(const tr_run *run, const tr_schedule *schedule,
                       tr_run_length length) {
    int64_t total = schedule->total_steps, last = length.run - length.update;
    if (total <= 0 || last <= total) {
        return;
    }
    char text[160];
    double most = tr__schedule_most_beyond(schedule, last);
    if (schedule->kind == TR_SCHEDULE_COSINE) {
        snprintf(text, sizeof text,
                 "after these, Hugging Face's \"cosine\" rises again, up to %.3g of "
                 "the rate",
                 most);
    } else if (most > 0) {
        return;
    } else {
        snprintf(text, sizeof text, "the updates after these have rate 0");
    }
    tr__warn(&run->log,
             "scheduler.params.total_num_steps is %lld, but the run has %lld %s: %s; "
             "without the key the schedule lasts for the whole run",
             (long long)total, (long long)length.run, unit_name(schedule->unit), text);
}

tr_status tr__run_resolve_schedule(tr_run *run, tr_error *err) {
    tr_settings *s = &run->settings;
    tr_run_length length = {.run = s->steps, .update = 1};
    tr_schedule_unit unit = tr__schedule_read_unit(run->config);
    int64_t each =
        unit == TR_SCHEDULE_TOKENS ? tr_model_targets(run->model) : INT64_C(1);
    if (each == 0) {
        return tr_fail(err, TR_USAGE,
                       "scheduler.unit is \"tokens\", which counts targets, and the "
                       "model (%s) takes none: choose \"samples\" or \"updates\"",
                       run->model->type);
    }
    if (unit != TR_SCHEDULE_UPDATES) {
        length.run = at_most(samples_of(run), each);
        length.update = at_most(s->batches.first, each);
    }
    length.changes = s->batches.adaptive;
    tr_status status = tr__schedule_read(run->config, length, &s->schedule, err);
    if (status == TR_OK) {
        say_beyond(run, &s->schedule, length);
    }
    return status;
}

// ---- rates that follow

// The smallest beta that the schedule will ever give.
static double least_beta(const tr_settings *s) {
    const tr_hyper *hyper = &s->groups[s->group_count - 1].hyper;
    tr_hyper cycled = *hyper;
    if (s->schedule.kind == TR_SCHEDULE_ONE_CYCLE && s->schedule.cycle_momentum) {
        tr_rates rates = tr__schedule_at_time(&s->schedule, 0, 1);
        cycled.beta1 = fmin(s->schedule.min_momentum, s->schedule.max_momentum);
        cycled.beta2 = rates.beta2;
    }
    return fmin(cycled.beta1, cycled.beta2);
}

static tr_status resolve_scaling(tr_run *run, tr_error *err) {
    tr_settings *s = &run->settings;
    if (s->scaling.rule == TR_SCALING_NONE) {
        return TR_OK;
    }
    if (s->scaling.reference <= 0) {
        return tr_fail(err, TR_USAGE,
                       "batch_scaling.rule is \"%s\", which needs "
                       "batch_scaling.reference_batch: the effective batch that the "
                       "learning rate was found with",
                       tr__scaling_name(s->scaling.rule));
    }
    if (s->scaling.rule == TR_SCALING_ADAM && !s->optimizer->scale) {
        return tr_fail(
            err, TR_USAGE,
            "batch_scaling.rule \"adam\" is for Adam and AdamW; the optimizer "
            "is %s: use \"sqrt\" or \"linear\"",
            tr__config_text(run->config, "optimizer.type"));
    }
    int64_t largest = tr__batches_largest(&s->batches);
    return tr__scaling_check(
        &s->scaling, largest, least_beta(s),
        largest == s->batches.first ? "train_batch_size" : "the largest batch", err);
}

// ---- the noise scale

static void resolve_noise(tr_run *run) {
    if (!tr__config_is_decided(run->config, "noise_scale.measure")) {
        run->request.measure = TR_MEASURE_CHEAP;
    }
    if (run->settings.batches.adaptive) {
        run->request.measure = TR_MEASURE_ALWAYS;
    }
}

tr_status tr__run_resolve_stability(tr_run *run, tr_error *err) {
    resolve_noise(run);
    return resolve_scaling(run, err);
}
