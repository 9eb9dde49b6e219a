// Zero bubble (ZB-H1; Qi et al., arXiv 2401.10241): one forward and one backward by
// turns, and the backward hands on the gradient of its input alone. Gradients of
// weights come where a stage would wait. A stage keeps the activations of as many waves
// as the first stage of 1F1B does.
#include "plan/schedules/schedule.h"

static tr_chunk_wave in_order(const tr_pipeline_place *at, int64_t k) {
    (void)at;
    return (tr_chunk_wave){0, k};
}

static int64_t under_way(const tr_pipeline_place *at) {
    return at->chunks.stages - at->stage;
}

static int64_t kept(const tr_pipeline_place *at) {
    return at->chunks.stages;
}

const tr_pipeline_schedule tr__pipeline_zero_bubble = {.weights_later = true,
                                                       .least = 1,
                                                       .most = 1,
                                                       .forward = in_order,
                                                       .backward = in_order,
                                                       .under_way = under_way,
                                                       .kept = kept};
