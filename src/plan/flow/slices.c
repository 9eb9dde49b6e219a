// Tensors that the plan has in slices while files hold them whole.
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"

#include <string.h>

static bool is_of_same(const tr_plan_param *a, const tr_plan_param *b) {
    return strcmp(a->stored, b->stored) == 0;
}

// The slice that begins at element `first` of what `one` is a part of, NULL: none.
static const tr_plan_param *find_slice(const tr_plan *plan, const tr_plan_param *one,
                                       int64_t first) {
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *other = &plan->params[i];
        if (is_of_same(other, one) && other->lies.first == first) {
            return other;
        }
    }
    return NULL;
}

static int count_slices(const tr_plan *plan, const tr_plan_param *one) {
    int count = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        count += is_of_same(&plan->params[i], one);
    }
    return count;
}

// Slice after slice from the first element must lead to the last, and use up all.
static tr_status check_whole(const tr_plan *plan, const tr_plan_param *one,
                             tr_error *err) {
    int64_t end = tr_shape_count(one->stored_shape), at = 0;
    int chained = 0;
    while (at < end) {
        const tr_plan_param *slice = find_slice(plan, one, at);
        if (!slice || !tr_shape_equal(slice->stored_shape, one->stored_shape)) {
            break;
        }
        at += slice->count;
        chained++;
    }
    return at == end && chained == count_slices(plan, one)
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "the slices of tensor %s are not the whole of it, once each",
                         one->stored);
}

tr_status tr__plan_check_slices(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        const tr_plan_param *param = &plan->params[i];
        bool sliced = param->stored != param->name; // names are only compared where not
        status = sliced ? check_whole(plan, param, err) : TR_OK;
    }
    return status;
}

int tr__plan_slices(const tr_plan *plan) {
    int most = 1;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        int count = param->stored != param->name ? count_slices(plan, param) : 1;
        most = count > most ? count : most;
    }
    return most;
}
