// Which elements of parameters, states and gradients this rank has, as those see them
// who begin, save and resume a run.
#include "exec/store/pieces.h"
#include "base/checked.h"
#include "plan/flow/residency.h"

#include <string.h>

bool tr__is_away(const tr_executor *ex, const tr_flat_range *range) {
    return tr__is_on_nvme(ex->plan, range) || tr__is_on_device(ex, range);
}

const tr_flat_range *tr__range_of(const tr_executor *ex, int param, int state) {
    const tr_flat *flat = &ex->plan->flats[ex->plan->params[param].flat];
    return state < 0 ? &flat->master : &flat->state[state];
}

const tr_part_row *tr__state_of(const tr_executor *ex, int param, int state) {
    return tr__part_row(ex->plan, &ex->plan->flats[ex->plan->params[param].flat],
                        (tr_part)(TR_PART_STATE + state));
}

bool tr__is_packed(const tr_executor *ex, const tr_piece *piece) {
    return piece->state >= 0 &&
           tr__state_of(ex, piece->param, piece->state)->type != TR_STATE_F32;
}

// What of elements [first, first + count) of its flat buffer is the parameter's.
static tr_piece piece_of(const tr_executor *ex, int param, int state, int64_t first,
                         int64_t count) {
    const tr_plan_param *info = &ex->plan->params[param];
    int64_t begin = tr__max_i64(info->offset, first);
    int64_t end = tr__min_i64(info->offset + info->count, first + count);
    const tr_flat_range *range = tr__range_of(ex, param, state);
    bool none = range->buffer < 0 && state >= 0; // frozen
    if (begin >= end || none) {
        return (tr_piece){.data = NULL};
    }
    tr_piece piece = {.first = begin - info->offset,
                      .count = end - begin,
                      .param = param,
                      .state = state};
    bool here = range->buffer >= 0 && !tr__is_away(ex, range);
    piece.data =
        here && !tr__is_packed(ex, &piece) ? tr__kept_f32(ex, range, begin) : NULL;
    return piece;
}

float *tr__executor_param(tr_executor *executor, int param, int state) {
    const tr_flat_range *range = tr__range_of(executor, param, state);
    tr_piece piece = piece_of(executor, param, state, range->first, range->count);
    return piece.count == executor->plan->params[param].count ? piece.data : NULL;
}

const float *tr__executor_param_there(const tr_executor *executor, int param) {
    const tr_flat_range *range = tr__range_of(executor, param, -1);
    const tr_plan_param *info = &executor->plan->params[param];
    bool whole = range->first <= info->offset &&
                 info->offset + info->count <= range->first + range->count;
    return whole && tr__is_on_device(executor, range)
               ? tr__kept_f32(executor, range, info->offset)
               : NULL;
}

// Where the sums of all of a parameter's gradient are in memory; NULL: they are not.
static void *sums_of(const tr_executor *ex, int param) {
    const tr_plan_param *info = &ex->plan->params[param];
    const tr_flat *flat = &ex->plan->flats[info->flat];
    bool here = flat->grad.buffer >= 0 && !tr__is_on_nvme(ex->plan, &flat->grad);
    bool whole = here && flat->grad.count == flat->count;
    return whole ? tr__kept_sum(ex, &flat->grad, info->offset) : NULL;
}

float *tr__executor_grad(tr_executor *executor, int param) {
    const tr_plan *plan = executor->plan;
    const tr_flat *flat = &plan->flats[plan->params[param].flat];
    return plan->request.sums == TR_F32 && !tr__is_on_device(executor, &flat->grad)
               ? sums_of(executor, param)
               : NULL;
}

static void read_sums(const tr_executor *ex, const void *sums, int64_t count,
                      float *values) {
    tr_dtype type = ex->plan->request.sums;
    if (type == TR_F32) {
        memcpy(values, sums, (size_t)count * sizeof *values);
    } else {
        tr__convert(ex, type, sums, count, TR_F32, values);
    }
}

// By way of the exchange.
static bool read_device_sums(const tr_executor *ex, const char *sums, int64_t count,
                             float *values) {
    int64_t element = tr__sum_bytes(ex->plan), most = tr__exchange_elements(ex->plan);
    void *here = tr__memory(ex, ex->plan->exchange);
    for (int64_t done = 0; done < count; done += most) {
        int64_t part = tr__min_i64(most, count - done);
        if (tr__device_copy(ex, sums + done * element, here, part * element, NULL) !=
            TR_OK) {
            return false;
        }
        read_sums(ex, here, part, values + done);
    }
    return true;
}

bool tr__executor_read_grad(const tr_executor *executor, int param, int64_t first,
                            int64_t count, float *values) {
    const char *sums = sums_of(executor, param);
    if (!sums ||
        executor->plan->request.sums == TR_I64) { // whose scale only the step knows
        return false;
    }
    const tr_plan_param *info = &executor->plan->params[param];
    sums += first * tr__sum_bytes(executor->plan);
    if (tr__is_on_device(executor, &executor->plan->flats[info->flat].grad)) {
        return read_device_sums(executor, sums, count, values);
    }
    read_sums(executor, sums, count, values);
    return true;
}

// This data rank's shard of it.
static tr_piece shard_of(const tr_executor *ex, int param, int state) {
    const tr_flat *flat = &ex->plan->flats[ex->plan->params[param].flat];
    return piece_of(ex, param, state, flat->first, flat->own);
}

// Parameters that every rank keeps come by gathering, but for this rank's part; frozen
// ones never do.
tr_piece tr__executor_held(tr_executor *executor, int param, int state) {
    const tr_plan *plan = executor->plan;
    bool frozen = plan->flats[plan->params[param].flat].frozen;
    const tr_flat_range *range = tr__range_of(executor, param, state);
    return tr__plan_stage(plan) > 0 && !frozen
               ? shard_of(executor, param, state)
               : piece_of(executor, param, state, range->first, range->count);
}

tr_piece tr__executor_own(tr_executor *executor, int param, int state) {
    const tr_plan *plan = executor->plan;
    const tr_flat *flat = &plan->flats[plan->params[param].flat];
    return tr__owns(&flat->axes, &plan->request.mesh) ? shard_of(executor, param, state)
                                                      : (tr_piece){.data = NULL};
}
