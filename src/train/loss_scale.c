#include "train/loss_scale.h"

// The scale is applied as a float; DeepSpeed has no bound.
#define SCALE_MAX 0x1p120

tr_loss_scale tr__loss_scale_begin(const tr_loss_scale_rules *rules) {
    return (tr_loss_scale){.scale = rules->initial, .hysteresis = rules->hysteresis};
}

static tr_status after_overflow(const tr_loss_scale_rules *rules, tr_loss_scale *state,
                                tr_error *err) {
    if (state->hysteresis > 1) {
        state->hysteresis--;
    } else if (state->scale == rules->minimum) {
        return tr_fail(err, TR_NUMBERS,
                       "the gradient overflows at the smallest loss scale, %g: a lower "
                       "learning rate, or bf16, may help",
                       state->scale);
    } else {
        double half = state->scale / 2;
        state->scale = half > rules->minimum ? half : rules->minimum;
    }
    state->good = 0;
    return TR_OK;
}

static void after_good(const tr_loss_scale_rules *rules, tr_loss_scale *state) {
    bool doubles = state->good > 0 && state->good % rules->window == 0;
    state->good++;
    if (rules->consecutive || doubles) {
        state->hysteresis = rules->hysteresis;
    }
    if (doubles && state->scale < SCALE_MAX) {
        state->scale *= 2;
    }
}

tr_status tr__loss_scale_after(const tr_loss_scale_rules *rules, bool overflow,
                               tr_loss_scale *state, tr_error *err) {
    if (!rules->dynamic) {
        return TR_OK;
    }
    if (overflow) {
        return after_overflow(rules, state, err);
    }
    after_good(rules, state);
    return TR_OK;
}
