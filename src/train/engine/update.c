// Parameter groups: which parameters an update treats alike, and with which numbers.
#include "base/memory.h"
#include "plan/units/offsets.h"
#include "run/say/schedule_say.h"
#include "train/engine.h"

#include <stdlib.h>

// A parameter joins the range before it when nothing but padding lies between them:
// padding is zero, has no gradient, and stays zero.
static bool joins(const tr_update_range *last, int flat, int group, int64_t offset) {
    return last->flat == flat && last->group == group &&
           offset - (last->offset + last->count) <
               TR_ALIGNMENT / (int64_t)sizeof(float);
}

// A tensor of one dimension whose group has no decay of its own.
static bool is_undecayed(const tr_settings *settings, const tr_plan_param *param,
                         int group) {
    const tr_param_group *base = &settings->groups[settings->group_count - 1];
    return !settings->decay_1d && param->stored_shape.rank < 2 &&
           settings->groups[group].hyper.weight_decay == base->hyper.weight_decay;
}

// By flat buffer, then by offset.
static int compare_ranges(const void *a, const void *b) {
    const tr_update_range *x = a, *y = b;
    return x->flat != y->flat ? (x->flat > y->flat) - (x->flat < y->flat)
                              : (x->offset > y->offset) - (x->offset < y->offset);
}

tr_status tr__engine_ranges(tr_engine *engine, tr_error *err) {
    const tr_plan *plan = engine->plan;
    engine->ranges = tr__calloc(plan->param_count, sizeof *engine->ranges);
    if (!engine->ranges) {
        return tr_fail(err, TR_MEMORY, "no memory for the parameter groups");
    }
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (plan->flats[param->flat].frozen) {
            continue;
        }
        int group = tr__group_of(engine->settings, param->stored);
        tr_update_range *last =
            engine->range_count ? &engine->ranges[engine->range_count - 1] : NULL;
        const tr_optimizer *optimizer = engine->settings->optimizer;
        bool apart = optimizer->apart && plan->flats[param->flat].apart;
        bool alone = optimizer->adaptation || (optimizer->matrices && !apart);
        group += apart ? (int)engine->settings->group_count : 0;
        bool flat_rate = engine->settings->exclude_1d && param->stored_shape.rank < 2;
        if (last && !alone && joins(last, param->flat, group, param->offset)) {
            last->count = param->offset + param->count - last->offset;
        } else {
            engine->ranges[engine->range_count++] =
                (tr_update_range){.flat = param->flat,
                                  .offset = param->offset,
                                  .count = param->count,
                                  .group = group,
                                  .place = param->place,
                                  .tensor = param->tensor,
                                  .rows = param->shape.dim[0],
                                  .columns = param->shape.dim[1],
                                  .apart = apart,
                                  .adapts = !flat_rate,
                                  .undecayed = is_undecayed(
                                      engine->settings, param,
                                      tr__group_of(engine->settings, param->stored))};
        }
    }
    tr_status status = TR_OK;
    if (engine->settings->optimizer->matrices) {
        status = tr__engine_matrices(engine, err);
    }
    qsort(engine->ranges, engine->range_count, sizeof *engine->ranges, compare_ranges);
    return status;
}

// What an update takes, at a time of the schedule: hyper number `i`, which is of group
// `g` and begins as `from`.
static void order_hyper(tr_engine *engine, size_t i, size_t g, const tr_hyper *from,
                        int64_t time) {
    const tr_settings *settings = engine->settings;
    tr_hyper *hyper = &engine->hyper[i];
    *hyper = *from;
    tr_rates rates = tr__schedule_at_time(&settings->schedule, time, hyper->lr);
    hyper->lr = rates.lr;
    if (rates.has_betas) {
        hyper->beta1 = rates.beta1;
        hyper->beta2 = rates.beta2;
    }
    tr__scaling_apply(&settings->scaling, settings->optimizer, engine->batcher.batch,
                      hyper, NULL);
    hyper->lr *= tr__guard_rate(&settings->guard, &engine->guard);
    hyper->lr = isnan(engine->own_rate[g]) ? hyper->lr : engine->own_rate[g];
    engine->next_power[i][0] = engine->power[g][0] * hyper->beta1;
    engine->next_power[i][1] = engine->power[g][1] * hyper->beta2;
}

double tr__engine_order(tr_engine *engine, int64_t number, double grad_scale) {
    const tr_settings *settings = engine->settings;
    int64_t tokens = tr_model_targets(engine->plan->request.model);
    int64_t time =
        tr__schedule_time(&settings->schedule, number, engine->count.learned, tokens);
    size_t groups = settings->group_count;
    for (size_t g = 0; g < groups; g++) {
        const tr_param_group *group = &settings->groups[g];
        order_hyper(engine, g, g, &group->hyper, time);
        if (settings->optimizer->apart) { // behind those of all groups
            order_hyper(engine, groups + g, g, &group->apart, time);
        }
    }
    tr_update_order order = {
        .optimizer = settings->optimizer,
        .ranges = engine->ranges,
        .range_count = engine->range_count,
        .hyper = engine->hyper,
        .grad_scale = grad_scale,
        .number = number,
        .power = (const double(*)[2])engine->next_power,
    };
    tr__executor_order(engine->executor, &order);
    return engine->hyper[settings->group_count - 1].lr;
}

// That of the last group, which has what no pattern matches.
static double next_rate(const tr_engine *engine) {
    const tr_settings *s = engine->settings;
    int64_t tokens = tr_model_targets(engine->plan->request.model);
    int64_t time = tr__schedule_time(&s->schedule, engine->count.update + 1,
                                     engine->count.learned, tokens);
    double own = s->groups[s->group_count - 1].hyper.lr;
    return tr__schedule_at_time(&s->schedule, time, own).lr *
           tr__scaling_rate(&s->scaling, engine->batcher.batch) *
           tr__guard_rate(&s->guard, &engine->guard);
}

void tr__engine_say_rate(const tr_engine *engine) {
    const tr_config *config = engine->run->config;
    const tr_settings *s = engine->settings;
    bool given = tr__config_is_given(config, "gradient_clipping");
    char shape[256];
    tr__schedule_say(&s->schedule, s->groups[s->group_count - 1].hyper.lr,
                     tr__scaling_rate(&s->scaling, engine->batcher.batch), s->steps,
                     shape, sizeof shape);
    tr__note(tr__run_log(engine->run),
             "%s, gradient_clipping %g%s; rate of update %lld: %g; %s",
             tr__config_text(config, "optimizer.type"), s->clip,
             given ? "" : " (default)", (long long)engine->count.update + 1,
             next_rate(engine), shape);
}
