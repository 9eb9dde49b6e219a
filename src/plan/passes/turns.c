// Pass: in which order this rank's stage of the pipeline takes waves of micro-batches
// through its chunks of the model, by the schedule. With one stage each wave goes
// forward and then backward. In an evaluation each micro-batch is a wave of its own.
#include "base/checked.h"
#include "plan/flow/passes.h"
#include "plan/schedules/schedule.h"

tr_status tr__pass_turns(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    const tr_pipeline_schedule *schedule = tr__pipeline_schedule(r->pipeline_order);
    tr_pipeline_place at = {.chunks = plan->chunks,
                            .waves = tr__ceil_div(r->accumulation_steps, r->wave),
                            .stage = r->mesh.at[TR_AXIS_PIPELINE],
                            .takes = plan->chunk_takes,
                            .one_by_one = plan->hands_out};
    // A caller gets a micro-batch's outputs before he brings the next one.
    plan->evaluated = plan->hands_out ? 1 : tr__pipeline_evaluated(&plan->chunks);
    if (r->inference) {
        return TR_OK;
    }
    tr_status status =
        tr__pipeline_turns(schedule, &at, &plan->turns[TR_SEQUENCE_TRAIN], err);
    at.waves = plan->evaluated;
    return status == TR_OK ? tr__pipeline_forwards(
                                 schedule, &at, &plan->turns[TR_SEQUENCE_EVALUATE], err)
                           : status;
}
