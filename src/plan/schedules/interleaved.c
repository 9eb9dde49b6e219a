// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473, section 2.2): a stage has
// several chunks of the model. As many waves as there are stages go through its first
// chunk, then the same through its second, and so on; then the next so many. A wave is
// back at a stage sooner, so stages wait less at both ends of a step.
#include "plan/schedules/schedule.h"

#include "base/checked.h"

// The last group of waves may be smaller than the others.
static tr_chunk_wave in_groups(const tr_pipeline_place *at, int64_t k) {
    int64_t stages = at->chunks.stages, each = at->chunks.each;
    int64_t first = k / (stages * each) * stages; // of the group's waves
    int64_t group = tr__min_i64(stages, at->waves - first), within = k - first * each;
    return (tr_chunk_wave){within / group, first + within % group};
}

static tr_chunk_wave in_groups_back(const tr_pipeline_place *at, int64_t k) {
    tr_chunk_wave next = in_groups(at, k);
    next.chunk = at->chunks.each - 1 - next.chunk;
    return next;
}

// Each stage's first backward comes two turns after that of the stage behind it.
static int64_t under_way(const tr_pipeline_place *at) {
    int64_t behind = at->chunks.stages - 1 - at->stage;
    return 2 * behind + (at->chunks.each - 1) * at->chunks.stages + 1;
}

const tr_pipeline_schedule tr__pipeline_interleaved = {.least = 2,
                                                       .forward = in_groups,
                                                       .backward = in_groups_back,
                                                       .under_way = under_way};
