// Which classes of tensors are worth a try.
#include "models/models.h"
#include "plan/flow/passes.h"
#include "plan/passes/away.h"
#include "planner/planner.h"

// What a choice may cost, of what the same bytes cost by recomputing whole units.
#define CLEARLY_CHEAPER 0.9

// One micro-batch on one rank, with everything at hand.
static tr_plan_request alone(const tr_plan_request *of) {
    tr_plan_request r = *of;
    r.train_batch_size = r.micro_batch;
    r.accumulation_steps = 1;
    r.mesh = tr__mesh_with_data(&of->mesh, 1);
    tr__request_one_stage(&r);
    r.stage = 0;
    r.wave = r.recomputed_units = r.recomputed_ops_units = 0;
    r.recomputed_ops = TR_RECOMPUTE_DEFAULT;
    r.optimizer_placement = r.param_placement = r.grad_placement = TR_SPACE_DEVICE;
    tr__request_nothing_away(&r);
    return r;
}

// From `from` on, is it cheaper to take `choice` than to go some of the way to `whole`?
static bool is_worth(const tr_recompute_choice *from, const tr_recompute_choice *choice,
                     const tr_recompute_choice *whole) {
    double part =
        (double)(from->kept - choice->kept) / (double)(from->kept - whole->kept);
    return choice->flops - from->flops <=
           CLEARLY_CHEAPER * part * (whole->flops - from->flops);
}

static void take(tr_planner_request *request, const tr_recompute_choice *choices,
                 int count) {
    const tr_recompute_choice *whole = &choices[count - 1], *last = &choices[0];
    int classes = whole->units ? count - 1 : count;
    request->recompute_choices[request->recompute_choice_count++] = last->ops;
    for (int i = 1; i < classes; i++) {
        if (!whole->units || is_worth(last, &choices[i], whole)) {
            last = &choices[i];
            request->recompute_choices[request->recompute_choice_count++] = last->ops;
        }
    }
}

tr_status tr__planner_find_recompute_choices(tr_planner_request *request,
                                             tr_error *err) {
    tr_recompute_choice choices[TR_RECOMPUTE_CHOICES_MAX];
    tr_plan_request small = alone(&request->plan);
    tr_error why = {0};
    tr_plan *plan = NULL;
    int count = 0;
    if (!(request->free >> TR_DIMENSION_recomputed_ops & 1) ||
        request->recompute_choice_count) {
        return TR_OK;
    }
    tr_status status = TR_OK;
    if (request->sliced) {
        status =
            tr__model_slice(request->sliced, (int)request->vocabulary_slices, &why);
    }
    if (status == TR_OK) {
        status = tr__plan_draft(&small, &plan, &why);
    }
    if (status == TR_OK) {
        status = tr_plan_recompute_choices(plan, choices, &count, &why);
    }
    if (status == TR_OK) {
        take(request, choices, count);
    }
    tr_plan_destroy(plan);
    // What cannot be so small is left as it is.
    return status == TR_OK || status == TR_USAGE
               ? TR_OK
               : tr_fail(err, status, "%s", why.message);
}
