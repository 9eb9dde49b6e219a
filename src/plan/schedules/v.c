// V (ZB-V; Qi et al., arXiv 2401.10241): the model goes through all stages and back
// again, so each stage has two chunks, and the first stage the model's first and last
// one. What can go is taken, and gradients of weights fill the gaps. A stage keeps as
// many activations as the first stage of 1F1B does.
//
// What to look for first depends on how long turns take: where all take as long, the
// later chunk's forward, so that the first wave gets through; where backwards are long
// (they recompute), these.
#include "plan/schedules/schedule.h"

static int64_t kept(const tr_pipeline_place *at) {
    return at->chunks.each * at->chunks.stages;
}

#define FORWARD(chunk)                                                                 \
    { TR_TURN_FORWARD, chunk }
#define BACKWARD(chunk)                                                                \
    { TR_TURN_BACKWARD, chunk }

static const tr_turn_choice tries[][TR_TURN_CHOICES] = {
    {FORWARD(1), FORWARD(0), BACKWARD(0), BACKWARD(1)},
    {FORWARD(1), FORWARD(0), BACKWARD(1), BACKWARD(0)},
    {FORWARD(1), BACKWARD(1), BACKWARD(0), FORWARD(0)},
    {BACKWARD(0), FORWARD(1), FORWARD(0), BACKWARD(1)},
    {BACKWARD(0), BACKWARD(1), FORWARD(1), FORWARD(0)},
    {BACKWARD(1), BACKWARD(0), FORWARD(1), FORWARD(0)},
    {BACKWARD(1), FORWARD(1), FORWARD(0), BACKWARD(0)},
};

const tr_pipeline_schedule tr__pipeline_v = {.weights_later = true,
                                             .folds = true,
                                             .least = 2,
                                             .most = 2,
                                             .under_way = kept,
                                             .kept = kept,
                                             .tries = tries,
                                             .try_count = sizeof tries / sizeof *tries};
