// Pass: in which order this rank's stage of the pipeline takes waves of micro-batches
// through its chunks of the model, by the schedule. With one stage each wave goes
// forward and then backward.
#include "base/checked.h"
#include "plan/flow/passes.h"
#include "plan/schedules/schedule.h"

tr_status tr__pass_turns(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    const tr_pipeline_place at = {.chunks = plan->chunks,
                                  .waves = tr__ceil_div(r->accumulation_steps, r->wave),
                                  .stage = r->mesh.at[TR_AXIS_PIPELINE],
                                  .takes = plan->chunk_takes};
    return r->inference ? TR_OK
                        : tr__pipeline_turns(tr__pipeline_schedule(r->pipeline_order),
                                             &at, &plan->turns, err);
}
