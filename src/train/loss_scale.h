// The loss scale of fp16 training: DeepSpeed's rules (those of its ZeRO stages), as a
// small state and two functions. The state is part of a checkpoint.
//
// An overflow skips the update. While hysteresis is left it only uses one up; else the
// scale is halved, not below the minimum (one that begins below it goes up to it); at
// the minimum it is an error. The scale
// doubles on good step window + 1 after the start or an overflow, and then every window
// good steps. A doubling refills the hysteresis (with `consecutive` every good step
// does), a halving never.
#ifndef TR_TRAIN_LOSS_SCALE_H
#define TR_TRAIN_LOSS_SCALE_H

#include "run/loss_scale_rules.h"

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_loss_scale {
    double scale;
    int64_t good;       // good steps since the start or the last overflow
    int64_t hysteresis; // left, >= 1; at 1 an overflow halves the scale
} tr_loss_scale;

tr_loss_scale tr__loss_scale_begin(const tr_loss_scale_rules *rules);

// After a step. TR_NUMBERS: it overflowed at the smallest scale; the state is as it
// was.
tr_status tr__loss_scale_after(const tr_loss_scale_rules *rules, bool overflow,
                               tr_loss_scale *state, tr_error *err);

#endif
