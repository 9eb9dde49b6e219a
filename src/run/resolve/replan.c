// The plan of the same run for another effective batch.
#include "base/checked.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"
#include "run/run.h"

tr_status tr__run_replan(const tr_run *run, const tr_plan *plan, int64_t batch,
                         tr_plan **out, tr_error *err) {
    const tr_plan_request *asked = &run->request;
    tr_plan_request request = plan->request;
    tr_plan *made = NULL;
    tr_error mine = {0};
    request.train_batch_size = batch;
    request.accumulation_steps =
        tr__ceil_div(batch, request.micro_batch * tr__data_ranks(&request));
    request.wave = tr__min_i64(asked->wave, request.accumulation_steps);
    request.measure = asked->measure;
    tr_status status = tr__run_choose_again(run, &request, err);
    if (status != TR_OK) {
        return status;
    }
    status = tr_plan_make(&request, &made, &mine);
    if (status == TR_OK) {
        status = tr__run_fits(run, made, &mine);
    }
    status = tr__agree(run->comm, status, &mine, err);
    if (status != TR_OK) {
        tr_plan_destroy(made);
        return status;
    }
    *out = made;
    return TR_OK;
}
