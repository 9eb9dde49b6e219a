// A schedule in words: the shape of the rate over the run.
#include "run/say/schedule_say.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct shape {
    const tr_schedule *s;
    double own, scale; // the group's own rate, and what all rates are multiplied by
} shape;

static double top(const shape *p) {
    const tr_schedule *s = p->s;
    bool own = s->kind == TR_SCHEDULE_CONSTANT ||
               s->kind == TR_SCHEDULE_WARMUP_COSINE ||
               s->kind >= TR_SCHEDULE_CONSTANT_WITH_WARMUP || s->max_is_own;
    return p->scale * (own ? p->own : s->max_lr);
}

static const char *unit_of(const tr_schedule *s) {
    static const char *const words[] = {[TR_SCHEDULE_UPDATES] = "update",
                                        [TR_SCHEDULE_SAMPLES] = "sample",
                                        [TR_SCHEDULE_TOKENS] = "token"};
    return words[s->unit];
}

// "up over 100 updates (log), then "; "": at once.
static void print_rise(const shape *p, const char *how, char *dst, size_t size) {
    dst[0] = '\0';
    if (p->s->warmup_steps > 0) {
        snprintf(dst, size, "up over %lld %s%s%s, then ", (long long)p->s->warmup_steps,
                 unit_of(p->s), tr__plural(p->s->warmup_steps), how);
    }
}

static void print_end(const shape *p, const char *rise, const char *how, double end,
                      char *dst, size_t size) {
    snprintf(dst, size, "peak rate %g: %s%s to %g at %s %lld", top(p), rise, how, end,
             unit_of(p->s), (long long)p->s->total_steps);
}

static void print_cycle(const shape *p, char *dst, size_t size) {
    const tr_schedule *s = p->s;
    const char *after = s->decay_size > 0 && s->decay_lr > 0 ? ", then falling" : "";
    snprintf(dst, size,
             "peak rate %g: OneCycle up from %g over %lld %ss and back over %lld%s",
             top(p), p->scale * s->min_lr, (long long)s->first_size, unit_of(s),
             (long long)s->second_size, after);
}

// A run that ends before the peak never trains at it.
static void print_early(const tr_schedule *s, int64_t updates, char *dst, size_t size) {
    int64_t rise = s->kind == TR_SCHEDULE_ONE_CYCLE ? s->first_size : s->warmup_steps;
    if (s->unit == TR_SCHEDULE_UPDATES && updates > 0 && updates < rise) {
        snprintf(dst, size, "; the run ends before that, at update %lld",
                 (long long)updates);
    }
}

static void print_shape(const tr_schedule *schedule, double own_lr, double scale,
                        char *dst, size_t size) {
    shape p = {schedule, own_lr, scale};
    char rise[96];
    print_rise(&p,
               schedule->kind >= TR_SCHEDULE_CONSTANT_WITH_WARMUP ? ""
               : schedule->linear                                 ? " (linear)"
                                                                  : " (log)",
               rise, sizeof rise);
    switch (schedule->kind) {
    case TR_SCHEDULE_CONSTANT:
        snprintf(dst, size, "rate %g, constant", top(&p));
        break;
    case TR_SCHEDULE_WARMUP:
    case TR_SCHEDULE_CONSTANT_WITH_WARMUP:
        snprintf(dst, size, "peak rate %g: %sconstant", top(&p), rise);
        break;
    case TR_SCHEDULE_WARMUP_DECAY:
        print_end(&p, rise, "down in a line", scale * schedule->min_lr, dst, size);
        break;
    case TR_SCHEDULE_LINEAR:
        print_end(&p, rise, "down in a line", 0, dst, size);
        break;
    case TR_SCHEDULE_WARMUP_COSINE:
        print_end(&p, rise, "down by a cosine", top(&p) * schedule->end_ratio, dst,
                  size);
        break;
    case TR_SCHEDULE_COSINE: {
        double end = tr__schedule_at_time(schedule, schedule->total_steps, 1).lr;
        print_end(&p, rise, "by a cosine", top(&p) * end, dst, size);
        break;
    }
    case TR_SCHEDULE_RANGE_TEST:
        snprintf(dst, size, "rates from %g on: LRRangeTest adds %g every %lld %ss",
                 scale * schedule->min_lr,
                 scale * schedule->min_lr * schedule->range_rate,
                 (long long)schedule->range_size, unit_of(schedule));
        break;
    case TR_SCHEDULE_ONE_CYCLE:
        print_cycle(&p, dst, size);
        break;
    }
}

void tr__schedule_say(const tr_schedule *schedule, double own_lr, double scale,
                      int64_t updates, char *dst, size_t size) {
    print_shape(schedule, own_lr, scale, dst, size);
    size_t used = strlen(dst);
    print_early(schedule, updates, dst + used, size - used);
}
