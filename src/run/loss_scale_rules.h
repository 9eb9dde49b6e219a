// What a run file says of fp16's loss scale (train/loss_scale.h).
#ifndef TR_RUN_LOSS_SCALE_RULES_H
#define TR_RUN_LOSS_SCALE_RULES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_loss_scale_rules {
    bool dynamic; // false: the scale stays at `initial`, and no overflow is an error
    double initial, minimum;
    int64_t window;     // > 0
    int64_t hysteresis; // >= 1
    bool consecutive;
} tr_loss_scale_rules;

#endif
