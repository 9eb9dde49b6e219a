// What is read off each step beside its update: the gradient noise scale, and spikes.
#include "train/engine.h"

#include <math.h>

// Norms of means over targets, and sizes in samples: as many as have the mean's share
// of the batch's targets.
static tr_noise_sample sample_of(const tr_engine *engine, const tr_measured *measured,
                                 double targets, int64_t samples) {
    double unscale = engine->seed_power / engine->scale.scale;
    return (tr_noise_sample){
        .small = measured->first_squares * unscale * unscale,
        .small_inverse = measured->first_inverse * targets / (double)samples,
        .big = measured->squares * unscale * unscale / (targets * targets),
        .big_inverse = 1 / (double)samples,
    };
}

// Both are sums over elements, so over tensors: those that are measured over one
// micro-batch and those over a wave give a part each. A step in which other tensors are
// measured than in the others (a short batch can be a single wave) tells nothing.
static bool estimate(const tr_engine *engine, const tr_step_statistics *v,
                     int64_t samples, double *trace, double *gradient) {
    const tr_measured *measured[] = {&v->untied, &v->tied};
    double targets = v->sums[TR_SUM_COUNT];
    bool tied = engine->plan->micro_norms_tied;
    bool known = targets > 0 && tied == engine->whole->micro_norms_tied;
    *trace = *gradient = 0;
    for (int i = 0; i < 1 + tied && known; i++) {
        tr_noise_sample sample = sample_of(engine, measured[i], targets, samples);
        double trace_, gradient_;
        known =
            measured[i]->firsts > 0 && tr__noise_estimate(&sample, &trace_, &gradient_);
        *trace += known ? trace_ : 0;
        *gradient += known ? gradient_ : 0;
    }
    return known;
}

void tr__engine_measure(tr_engine *engine, const tr_step_statistics *statistics,
                        tr_step_result *result) {
    tr_noise *noise = &engine->noise;
    double trace, gradient;
    if (!result->skipped &&
        estimate(engine, statistics, result->batch, &trace, &gradient)) {
        tr__noise_add(noise, engine->settings->noise_keep, trace, gradient);
    }
    result->noise_scale = tr__noise_scale(noise);
    result->noise_trace = tr__noise_trace(noise);
    result->noise_gradient = tr__noise_gradient(noise);
    const tr_batches *batches = &engine->settings->batches;
    if (batches->adaptive && result->step % batches->every == 0) {
        engine->wanted_batch =
            tr__batches_follow(batches, engine->wanted_batch, result->noise_scale);
    }
}

// A batch without targets says nothing; nor does an overflow under a dynamic loss
// scale, whose search has an end of its own.
tr_status tr__engine_skipped(tr_engine *engine, const tr_step_result *result,
                             bool overflow, tr_error *err) {
    int64_t limit = engine->settings->max_skipped;
    bool searching = overflow && engine->settings->scale.dynamic;
    if (!result->skipped) {
        engine->count.in_row = 0;
    } else if (result->targets > 0 && !searching) {
        engine->count.in_row++;
    }
    if (limit == 0 || engine->count.in_row < limit) {
        return TR_OK;
    }
    return tr_fail(
        err, TR_NUMBERS,
        "step %lld: %lld updates in a row were skipped, the last one because "
        "%s%s%s: the run has diverged; lower the learning rate or look at the data "
        "(max_skipped_updates is %lld)",
        (long long)result->step, (long long)engine->count.in_row,
        overflow ? "the loss or the gradient was not finite" : "of the spike guard",
        engine->blame[0] ? ", " : "", engine->blame, (long long)limit);
}

tr_status tr__engine_guard(tr_engine *engine, tr_step_result *result, tr_error *err) {
    const tr_guard_rules *rules = &engine->settings->guard;
    tr_spike spike = TR_SPIKE_NONE;
    tr_status status = TR_OK;
    if (result->targets > 0) {
        status = tr__guard_look(rules, &engine->guard, result->loss, result->grad_norm,
                                !result->skipped, engine->settings->scale.dynamic,
                                &spike, err);
    }
    result->spike = tr__spike_name(spike);
    result->act = spike == TR_SPIKE_NONE ? "" : tr__guard_action_name(rules->action);
    result->skipped |= spike != TR_SPIKE_NONE && rules->action != TR_GUARD_WARN;
    return status;
}
