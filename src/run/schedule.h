// Schedules of the learning rate (and, in OneCycle, of betas): pure functions of
// the update's number.
//
// They are DeepSpeed's, which sets the rate once at the start and then after each
// update: update u = 1, 2, ... runs at what its scheduler has for t = u - 2, and t < 0
// is the start. So updates 1 and 2 both run at the bottom of a warm-up. Skipped steps
// are no updates.
//
//     constant        the group's own rate
//     WarmupLR        min + (max - min) * gamma, then max
//     WarmupDecayLR   the same, then min + (max - min) * (total - t) / (total - N)
//     WarmupCosineLR  own rate * (r + (1 - r) * gamma), then
//                     own rate * (c + (1 - c) * (1 + cos(pi * p)) / 2),
//                     p = (t - N + 1) / (total - N); update 1 at rate 0
//     LRRangeTest     min * (1 + rate * (t + 1) / size), `staircase`: floor the
//     fraction OneCycle        min up to max and back to min in straight lines, or in
//     stairs,
//                     then
//                     min / (1 + decay * (updates after the cycle) / decay_step_size)
//
// N = max(2, warmup steps); gamma = ln(t + 1) / ln(N) ("log") or t / N ("linear").
//
// Three are Hugging Face's (transformers, optimization.py). Its scheduler steps after
// each update, too, but the start counts as its first step: update u runs at
// t = u - 1. With w = warmup steps, all three have own rate * t / w for t < w, then
//
//     constant_with_warmup  own rate
//     linear                own rate * max(0, (total - t) / max(1, total - w))
//     cosine                own rate * (1 + cos(2 * pi * cycles * p)) / 2,
//                           p = (t - w) / max(1, total - w)
//
// A schedule may be given in samples or tokens in place of updates: its lengths are
// then in that unit, and t is how much of it the applied updates before this one have
// taken. So the rate is a function of what has been learned from, whatever the batch
// is.
#ifndef TR_RUN_SCHEDULE_H
#define TR_RUN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tr_schedule_kind {
    TR_SCHEDULE_CONSTANT,
    TR_SCHEDULE_WARMUP,
    TR_SCHEDULE_WARMUP_DECAY,
    TR_SCHEDULE_WARMUP_COSINE,
    TR_SCHEDULE_RANGE_TEST,
    TR_SCHEDULE_ONE_CYCLE,
    TR_SCHEDULE_CONSTANT_WITH_WARMUP,
    TR_SCHEDULE_LINEAR,
    TR_SCHEDULE_COSINE,
} tr_schedule_kind;

typedef enum tr_schedule_unit {
    TR_SCHEDULE_UPDATES,
    TR_SCHEDULE_SAMPLES,
    TR_SCHEDULE_TOKENS
} tr_schedule_unit;

typedef struct tr_schedule {
    tr_schedule_kind kind;
    tr_schedule_unit unit;             // of all its lengths
    double min_lr, max_lr;             // warm-ups by rate, OneCycle; min_lr: range test
    bool max_is_own;                   // the group's own rate in place of max_lr
    bool linear;                       // warm-ups: not logarithmic
    int64_t warmup_steps, total_steps; // in `unit`
    double min_ratio, end_ratio;       // cosine: r and c
    double cycles;                     // Hugging Face's cosine
    int64_t range_size;                // range test, in `unit`
    double range_rate;
    bool staircase;
    int64_t first_size, second_size;     // OneCycle: its halves, in `unit`
    int64_t first_stairs, second_stairs; // 0: a straight line
    int64_t decay_size;                  // 0: no decay after the cycle
    double decay_lr, decay_momentum;
    bool cycle_momentum;
    double min_momentum, max_momentum;
} tr_schedule;

typedef struct tr_rates {
    double lr;
    bool has_betas;      // beta1 and beta2 take the place of the optimizer's
    double beta1, beta2; // an optimizer without betas ignores them
} tr_rates;

// What update number `update` (from 1) of a parameter group whose own learning rate is
// `own_lr` runs with.
tr_rates tr__schedule_at(const tr_schedule *schedule, int64_t update, double own_lr);

// The same by t (tr__schedule_time).
tr_rates tr__schedule_at_time(const tr_schedule *schedule, int64_t t, double own_lr);

// t of update number `update`, before which the applied updates have had so many
// samples of `tokens` tokens each: update - 2 (Hugging Face's: update - 1), or the
// samples or tokens of the updates before.
int64_t tr__schedule_time(const tr_schedule *schedule, int64_t update, int64_t samples,
                          int64_t tokens);

// The highest rate, for an own_lr of 1, from t = total_steps to t = last.
double tr__schedule_most_beyond(const tr_schedule *schedule, int64_t last);

#endif
