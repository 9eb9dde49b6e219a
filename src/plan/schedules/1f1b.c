// One forward, one backward (PipeDream-Flush; Narayanan et al., arXiv 2006.09503): a
// stage takes as many waves forward as stages follow it, then one forward and one
// backward by turns, then the backwards that are left.
#include "plan/schedules/schedule.h"

static tr_chunk_wave in_order(const tr_pipeline_place *at, int64_t k) {
    (void)at;
    return (tr_chunk_wave){0, k};
}

static int64_t under_way(const tr_pipeline_place *at) {
    return at->chunks.stages - at->stage;
}

const tr_pipeline_schedule tr__pipeline_1f1b = {.least = 1,
                                                .most = 1,
                                                .forward = in_order,
                                                .backward = in_order,
                                                .under_way = under_way};
