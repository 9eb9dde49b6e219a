// The schedules that there are.
#include "plan/schedules/schedule.h"

#include "base/checked.h"
#include "plan/flow/plan.h"

static const tr_pipeline_schedule *const schedules[] = {
    [TR_PIPELINE_1F1B] = &tr__pipeline_1f1b,
    [TR_PIPELINE_INTERLEAVED] = &tr__pipeline_interleaved,
    [TR_PIPELINE_BREADTH_FIRST] = &tr__pipeline_breadth_first,
    [TR_PIPELINE_ZERO_BUBBLE] = &tr__pipeline_zero_bubble,
    [TR_PIPELINE_V] = &tr__pipeline_v,
};

const char *const tr__pipeline_names[] = {
    [TR_PIPELINE_1F1B] = "1f1b",
    [TR_PIPELINE_INTERLEAVED] = "interleaved",
    [TR_PIPELINE_BREADTH_FIRST] = "breadth_first",
    [TR_PIPELINE_ZERO_BUBBLE] = "zero_bubble",
    [TR_PIPELINE_V] = "v",
    NULL,
};

const tr_pipeline_schedule *tr__pipeline_schedule(tr_pipeline_order which) {
    size_t at = (size_t)which;
    return at < sizeof schedules / sizeof *schedules ? schedules[at] : NULL;
}

bool tr__weights_come_later(const tr_plan_request *request) {
    const tr_pipeline_schedule *schedule =
        tr__pipeline_schedule(request->pipeline_order);
    return schedule && schedule->weights_later && !request->inference &&
           tr__has_stages(request);
}

tr_chunks tr__pipeline_chunks(const tr_plan_request *request) {
    const tr_pipeline_schedule *schedule =
        tr__pipeline_schedule(request->pipeline_order);
    return (tr_chunks){.stages = request->mesh.size[TR_AXIS_PIPELINE],
                       .each = tr__max_i64(request->virtual_stages, 1),
                       .folds = schedule && schedule->folds};
}

// Where chunks go round, a stage has the next wave's first chunk to do when it is done
// with the last wave's last one. Where they go there and back, the first stage has the
// last chunk, too, and waits for it before the next waves begin: for (p - 1) / (4 p +
// p - 1) of the time, less than a fifth.
int64_t tr__pipeline_evaluated(const tr_chunks *chunks) {
    enum { FOLDED = 4 };
    bool waits = chunks->folds && chunks->stages > 1;
    return chunks->stages * (waits ? FOLDED : 1);
}
