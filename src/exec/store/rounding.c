// What units compute with, in 16 bits: made of the masters, after these have been drawn
// or read.
#include "base/checked.h"
#include "exec/store/pieces.h"
#include "plan/flow/residency.h"

static void round_copy(const tr_executor *ex, const tr_flat *flat, int64_t first,
                       int64_t count) {
    if (tr__plan_is_half(ex->plan) && !tr__copy_is_in_file(ex->plan, flat)) {
        tr__convert(ex, TR_F32, tr__kept_f32(ex, &flat->master, first), count,
                    ex->plan->request.compute, tr__kept_param(ex, &flat->copy, first));
    }
}

// Masters of these elements where the host sees them; those of a discrete device are
// brought into the exchange, behind which `*rounded` then points.
static tr_status see_masters(const tr_executor *ex, const tr_blocks *b,
                             const float **masters, void **rounded, tr_error *err) {
    float *memory = tr__memory(ex, ex->plan->exchange);
    *masters = tr__kept_f32(ex, &b->flat->master, b->first);
    *rounded = memory;
    if (!tr__is_on_device(ex, &b->flat->master)) {
        return TR_OK;
    }
    tr_status status =
        tr__device_copy(ex, *masters, memory, b->count * (int64_t)sizeof *memory, err);
    *masters = memory;
    *rounded = memory + tr__exchange_elements(ex->plan);
    return status;
}

// Masters in memory, whose copies are on NVMe: rounded and written in whole blocks.
static tr_status write_copies(const tr_executor *ex, const tr_flat *flat, int64_t first,
                              int64_t end, tr_error *err) {
    const tr_plan *plan = ex->plan;
    int64_t block = tr__nvme_elements(plan, flat, TR_PART_COPY),
            from = flat->copy.first;
    tr_status status = TR_OK;
    first -= (first - from) % block;
    end = tr__min_i64(from + tr__round_up(end - from, block), from + flat->copy.count);
    while (first < end && status == TR_OK) {
        int64_t count = tr__min_i64(end - first, tr__exchange_elements(plan));
        tr_blocks b = {.flat = flat, .first = first, .count = count};
        const float *masters = NULL;
        void *rounded = NULL;
        status = see_masters(ex, &b, &masters, &rounded, err);
        if (status == TR_OK) {
            status = tr__write_copy(ex, b, masters, rounded, err);
        }
        first += count;
    }
    return status;
}

// Copies on a discrete device: rounded by the host in the exchange, and brought there.
static tr_status round_away(const tr_executor *ex, const tr_flat *flat, int64_t first,
                            int64_t end, tr_error *err) {
    tr_status status = TR_OK;
    while (first < end && status == TR_OK) {
        int64_t count = tr__min_i64(end - first, tr__exchange_elements(ex->plan));
        tr_blocks b = {.flat = flat, .first = first, .count = count};
        const float *masters = NULL;
        void *rounded = NULL;
        status = see_masters(ex, &b, &masters, &rounded, err);
        if (status == TR_OK) {
            void *copy = tr__kept_param(ex, &flat->copy, first);
            tr__convert(ex, TR_F32, masters, count, ex->plan->request.compute, rounded);
            status = tr__device_copy(ex, rounded, copy,
                                     count * tr__param_bytes(ex->plan), err);
        }
        first += count;
    }
    return status;
}

// Of elements [first, end) of a flat buffer those that this rank keeps masters of: a
// stage without its users has none.
static tr_status round_range(const tr_executor *ex, const tr_flat *flat, int64_t first,
                             int64_t end, tr_error *err) {
    end = tr__min_i64(end, flat->count);
    if (tr__plan_stage(ex->plan) > 0) {
        first = tr__max_i64(first, flat->master.first);
        end = tr__min_i64(end, flat->master.first + flat->master.count);
    }
    if (first >= end || tr__flat_is_half(flat)) {
        return TR_OK;
    }
    if (tr__copy_is_in_file(ex->plan, flat) &&
        !tr__is_on_nvme(ex->plan, &flat->master)) {
        return write_copies(ex, flat, first, end, err);
    }
    if (tr__plan_is_half(ex->plan) && !tr__copy_is_in_file(ex->plan, flat) &&
        tr__is_on_device(ex, &flat->copy)) {
        return round_away(ex, flat, first, end, err);
    }
    round_copy(ex, flat, first, end - first);
    return TR_OK;
}

tr_status tr__executor_round(tr_executor *executor, tr_error *err) {
    const tr_plan *plan = executor->plan;
    tr_status status = TR_OK;
    for (size_t f = 0; f < plan->flat_count && status == TR_OK; f++) {
        status = round_range(executor, &plan->flats[f], 0, plan->flats[f].count, err);
    }
    return status;
}

tr_status tr__executor_round_param(tr_executor *executor, int param, tr_error *err) {
    const tr_plan_param *p = &executor->plan->params[param];
    const tr_flat *flat = &executor->plan->flats[p->flat];
    return round_range(executor, flat, p->offset, p->offset + p->count, err);
}
