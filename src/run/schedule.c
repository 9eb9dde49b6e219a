#include "run/schedule.h"

#include <math.h>

// DeepSpeed lets OneCycle's decay_mom_rate push beta1 past 1, where Adam's first mean
// grows without bound.
#define BETA1_MAX (1 - 0x1p-20)

static const double one_cycle_beta2 = 0.99;
static const double pi = 3.14159265358979323846;

static double at_least(double value, double least) {
    return value > least ? value : least;
}

static int64_t warmup_length(const tr_schedule *s) {
    return s->warmup_steps > 2 ? s->warmup_steps : 2;
}

// 0 .. 1 while the warm-up lasts.
static double gamma_at(const tr_schedule *s, int64_t t) {
    double length = (double)warmup_length(s);
    if (t < 0) {
        return 0;
    }
    return s->linear ? (double)t / length : log((double)t + 1) / log(length);
}

static double warmup(const tr_schedule *s, int64_t t, double own_lr) {
    double max = s->max_is_own ? own_lr : s->max_lr, share = 1;
    int64_t length = warmup_length(s);
    if (t < length) {
        share = gamma_at(s, t);
    } else if (s->kind == TR_SCHEDULE_WARMUP_DECAY) {
        double left = (double)(s->total_steps - t);
        share = at_least(left / at_least((double)(s->total_steps - length), 1), 0);
    }
    return s->min_lr + (max - s->min_lr) * share;
}

static double cosine(const tr_schedule *s, int64_t t, double own_lr) {
    int64_t length = warmup_length(s);
    if (t < 0) {
        return 0;
    }
    if (t < length) {
        return own_lr * (s->min_ratio + (1 - s->min_ratio) * gamma_at(s, t));
    }
    double span = at_least((double)(s->total_steps - length), 1);
    double progress = (double)(t - length + 1) / span;
    double wave = progress < 1 ? (1 + cos(pi * progress)) / 2 : 0;
    return own_lr * (s->end_ratio + (1 - s->end_ratio) * wave);
}

static double range_test(const tr_schedule *s, int64_t t) {
    double steps = (double)(t + 1) / (double)s->range_size;
    return s->min_lr * (1 + s->range_rate * (s->staircase ? floor(steps) : steps));
}

// 0 at both ends of the cycle, 1 at its top. t in [-1, first + second).
static double cycle_height(const tr_schedule *s, int64_t t) {
    int64_t place = (t + 1) % (s->first_size + s->second_size);
    bool rising = place <= s->first_size;
    int64_t size = rising ? s->first_size : s->second_size;
    int64_t stairs = rising ? s->first_stairs : s->second_stairs;
    double height = (double)(rising ? place : s->first_size + s->second_size - place);
    if (stairs > 0) {
        return floor(height * (double)stairs / (double)size) / (double)stairs;
    }
    return height / (double)size;
}

static tr_rates one_cycle(const tr_schedule *s, int64_t t, double own_lr) {
    double max_lr = s->max_is_own ? own_lr : s->max_lr;
    double swing = s->max_momentum - s->min_momentum;
    int64_t total = s->first_size + s->second_size;
    tr_rates rates = {.has_betas = s->cycle_momentum, .beta2 = one_cycle_beta2};
    if (t < 0) {
        // Before its first step DeepSpeed has set both to their minima.
        rates.lr = s->min_lr;
        rates.beta1 = s->min_momentum;
    } else if (t < total) {
        double height = cycle_height(s, t);
        rates.lr = s->min_lr + (max_lr - s->min_lr) * height;
        rates.beta1 = s->max_momentum - swing * height;
    } else {
        double after =
            s->decay_size > 0 ? (double)(t - total + 1) / (double)s->decay_size : 0;
        double beta1 = s->max_momentum * (1 + s->decay_momentum * after);
        rates.lr = s->min_lr / (1 + s->decay_lr * after);
        rates.beta1 = beta1 < BETA1_MAX ? beta1 : BETA1_MAX;
    }
    return rates;
}

// ---- Hugging Face's

static bool is_hugging_face(const tr_schedule *s) {
    return s->kind == TR_SCHEDULE_CONSTANT_WITH_WARMUP ||
           s->kind == TR_SCHEDULE_LINEAR || s->kind == TR_SCHEDULE_COSINE;
}

// What the group's own rate is multiplied by.
static double hugging_face(const tr_schedule *s, int64_t t) {
    int64_t warmup_steps = s->warmup_steps;
    double span = at_least((double)(s->total_steps - warmup_steps), 1);
    if (t < warmup_steps) {
        return (double)t / (double)warmup_steps;
    }
    if (s->kind == TR_SCHEDULE_LINEAR) {
        return at_least((double)(s->total_steps - t) / span, 0);
    }
    if (s->kind == TR_SCHEDULE_COSINE) {
        double progress = (double)(t - warmup_steps) / span;
        return at_least(0.5 * (1 + cos(pi * s->cycles * 2 * progress)), 0);
    }
    return 1;
}

// ---- any

static int64_t time_of_update(const tr_schedule *s, int64_t update) {
    return update - (is_hugging_face(s) ? 1 : 2);
}

int64_t tr__schedule_time(const tr_schedule *schedule, int64_t update, int64_t samples,
                          int64_t tokens) {
    switch (schedule->unit) {
    case TR_SCHEDULE_SAMPLES:
        return samples;
    case TR_SCHEDULE_TOKENS:
        return samples * tokens;
    default:
        return time_of_update(schedule, update);
    }
}

tr_rates tr__schedule_at(const tr_schedule *schedule, int64_t update, double own_lr) {
    return tr__schedule_at_time(schedule, time_of_update(schedule, update), own_lr);
}

tr_rates tr__schedule_at_time(const tr_schedule *schedule, int64_t t, double own_lr) {
    tr_rates rates = {.lr = own_lr};
    switch (schedule->kind) {
    case TR_SCHEDULE_CONSTANT:
        break;
    case TR_SCHEDULE_WARMUP:
    case TR_SCHEDULE_WARMUP_DECAY:
        rates.lr = warmup(schedule, t, own_lr);
        break;
    case TR_SCHEDULE_WARMUP_COSINE:
        rates.lr = cosine(schedule, t, own_lr);
        break;
    case TR_SCHEDULE_RANGE_TEST:
        rates.lr = range_test(schedule, t);
        break;
    case TR_SCHEDULE_ONE_CYCLE:
        return one_cycle(schedule, t, own_lr);
    case TR_SCHEDULE_CONSTANT_WITH_WARMUP:
    case TR_SCHEDULE_LINEAR:
    case TR_SCHEDULE_COSINE:
        rates.lr = own_lr * hugging_face(schedule, t);
        break;
    }
    return rates;
}

// A wave's top is where it has gone a whole number of times.
static bool has_top(const tr_schedule *s, int64_t first, int64_t last) {
    double span = at_least((double)(s->total_steps - s->warmup_steps), 1);
    double from = s->cycles * (double)(first - s->warmup_steps) / span;
    double to = s->cycles * (double)(last - s->warmup_steps) / span;
    return floor(to) >= ceil(from);
}

double tr__schedule_most_beyond(const tr_schedule *schedule, int64_t last) {
    int64_t first = schedule->total_steps;
    if (schedule->kind == TR_SCHEDULE_COSINE && has_top(schedule, first, last)) {
        return 1;
    }
    return fmax(tr__schedule_at_time(schedule, first, 1).lr,
                tr__schedule_at_time(schedule, last, 1).lr);
}
