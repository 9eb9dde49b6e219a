// Breadth first (Lamy-Poirier, arXiv 2211.05953): all waves go through a stage's first
// chunk, then all through its second; backward likewise. Parameters of a chunk come and
// go once a step, and all activations are kept.
#include "plan/schedules/schedule.h"

static tr_chunk_wave all_waves(const tr_pipeline_place *at, int64_t k) {
    return (tr_chunk_wave){k / at->waves, k % at->waves};
}

static tr_chunk_wave all_waves_back(const tr_pipeline_place *at, int64_t k) {
    return (tr_chunk_wave){at->chunks.each - 1 - k / at->waves, k % at->waves};
}

static int64_t under_way(const tr_pipeline_place *at) {
    return at->chunks.each * at->waves;
}

const tr_pipeline_schedule tr__pipeline_breadth_first = {.least = 1,
                                                         .flushes = true,
                                                         .forward = all_waves,
                                                         .backward = all_waves_back,
                                                         .under_way = under_way};
