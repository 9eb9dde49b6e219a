// Runs of elements, borrowed and returned: in memory, or brought into the exchange from
// NVMe or from a discrete device.
#include "base/checked.h"
#include "base/half.h"
#include "exec/store/packed.h"
#include "plan/flow/residency.h"

#include <math.h>

static tr_blocks blocks_of(const tr_executor *ex, const tr_piece *piece, int64_t at) {
    const tr_plan_param *info = &ex->plan->params[piece->param];
    const tr_flat *flat = &ex->plan->flats[info->flat];
    const tr_flat_range *range = tr__range_of(ex, piece->param, piece->state);
    int64_t block = tr__nvme_elements(ex->plan, flat, tr__used_part(ex->plan));
    tr_blocks b = {.flat = flat};
    b.part = piece->state >= 0        ? (tr_part)(TR_PART_STATE + piece->state)
             : tr__flat_is_half(flat) ? TR_PART_COPY
                                      : TR_PART_PARAM;
    b.element = info->offset + piece->first + at;
    int64_t in_range = b.element - range->first;
    b.first = b.element - in_range % block;
    int64_t need = tr__round_up(b.element + piece->count - at - b.first, block);
    int64_t left = range->first + range->count - b.first;
    b.count = tr__min_i64(tr__min_i64(need, left), tr__exchange_elements(ex->plan));
    return b;
}

// ---- kept in 16 bits alone

// Where the host sees blocks of 16 bits: in memory, or behind the exchange's f32, where
// they are brought to from the file or from a discrete device.
static void *half_blocks(const tr_executor *ex, const tr_blocks *b) {
    float *memory = tr__memory(ex, ex->plan->exchange);
    return tr__copy_is_in_file(ex->plan, b->flat) ||
                   tr__is_on_device(ex, &b->flat->copy)
               ? (void *)(memory + tr__exchange_elements(ex->plan))
               : tr__kept_param(ex, &b->flat->copy, b->first);
}

static tr_status move_half(const tr_executor *ex, const tr_blocks *b, tr_direction way,
                           tr_error *err) {
    void *half = half_blocks(ex, b);
    if (tr__copy_is_in_file(ex->plan, b->flat)) {
        return tr__move_blocks(ex, b, half, way, err);
    }
    if (!tr__is_on_device(ex, &b->flat->copy)) {
        return TR_OK;
    }
    void *device = tr__kept_param(ex, &b->flat->copy, b->first);
    bool reads = way == TR_TO_HOST;
    return tr__device_copy(ex, reads ? device : half, reads ? half : device,
                           b->count * tr__param_bytes(ex->plan), err);
}

// Bits are lent as they lie.
static bool is_bits(const tr_executor *ex, const tr_piece *piece) {
    return ex->plan->params[piece->param].quantized != TR_QUANTIZED_NOT;
}

static tr_status lend_bits(const tr_executor *ex, const tr_blocks *b, tr_piece *run,
                           tr_error *err) {
    char *half = half_blocks(ex, b);
    run->data = (void *)(half + (b->element - b->first) * tr__param_bytes(ex->plan));
    return move_half(ex, b, TR_TO_HOST, err);
}

static tr_status widen_blocks(const tr_executor *ex, const tr_blocks *b, float *memory,
                              tr_error *err) {
    void *half = half_blocks(ex, b);
    tr_status status = move_half(ex, b, TR_TO_HOST, err);
    if (status == TR_OK) {
        tr__convert(ex, ex->plan->request.compute, half, b->count, TR_F32, memory);
    }
    return status;
}

static tr_status narrow_blocks(const tr_executor *ex, const tr_blocks *b,
                               const float *memory, tr_error *err) {
    void *half = half_blocks(ex, b);
    tr__convert(ex, TR_F32, memory, b->count, ex->plan->request.compute, half);
    return move_half(ex, b, TR_FROM_HOST, err);
}

// Nothing would be rounded, or may be.
static tr_status check_exact(const tr_executor *ex, const tr_piece *run,
                             tr_error *err) {
    enum { MANY = 256 };
    tr_dtype type = ex->plan->request.compute;
    bool rounds = ex->plan->request.frozen_rounds;
    for (int64_t at = 0; at < run->count && !rounds; at += MANY) {
        uint16_t half[MANY];
        float back[MANY];
        int64_t count = tr__min_i64(MANY, run->count - at);
        tr__convert(ex, TR_F32, run->data + at, count, type, half);
        tr__convert(ex, type, half, count, TR_F32, back);
        for (int64_t i = 0; i < count; i++) {
            bool nan = isnan(back[i]) && isnan(run->data[at + i]);
            if (back[i] != run->data[at + i] && !nan) {
                return tr_fail(
                    err, TR_IO,
                    "%s is frozen and kept in %s alone, as its file has it, so it "
                    "cannot become %.9g, which %s does not hold exactly",
                    ex->plan->params[run->param].stored, tr__half_name(type),
                    (double)run->data[at + i], tr__half_name(type));
            }
        }
    }
    return TR_OK;
}

// ---- borrowed and returned

static bool is_half(const tr_executor *ex, const tr_piece *piece) {
    const tr_plan *plan = ex->plan;
    return piece->state < 0 &&
           tr__flat_is_half(&plan->flats[plan->params[piece->param].flat]);
}

// Where the first element of a piece is on the device.
static float *device_at(const tr_executor *ex, const tr_piece *piece) {
    const tr_plan_param *info = &ex->plan->params[piece->param];
    return tr__kept_f32(ex, tr__range_of(ex, piece->param, piece->state),
                        info->offset + piece->first);
}

tr_status tr__executor_borrow(tr_executor *executor, const tr_piece *piece, int64_t at,
                              tr_piece *run, tr_error *err) {
    *run = *piece;
    run->first += at;
    run->count -= at;
    if (piece->data || run->count == 0) {
        run->data = piece->data ? piece->data + at : NULL;
        return TR_OK;
    }
    if (tr__is_packed(executor, piece)) {
        return tr__packed_borrow(executor, piece, at, run, err);
    }
    float *memory = tr__memory(executor, executor->plan->exchange);
    if (tr__is_on_device(executor,
                         tr__range_of(executor, piece->param, piece->state))) {
        run->data = memory;
        run->count = tr__min_i64(run->count, tr__exchange_elements(executor->plan));
        return tr__device_copy(executor, device_at(executor, run), memory,
                               run->count * (int64_t)sizeof *memory, err);
    }
    tr_blocks b = blocks_of(executor, piece, at);
    run->data = memory + (b.element - b.first);
    run->count = tr__min_i64(run->count, b.first + b.count - b.element);
    if (is_half(executor, piece) && is_bits(executor, piece)) {
        return lend_bits(executor, &b, run, err);
    }
    return is_half(executor, piece)
               ? widen_blocks(executor, &b, memory, err)
               : tr__move_blocks(executor, &b, memory, TR_TO_HOST, err);
}

// What the masters of these blocks are rounded to, by way of `rounded`.
tr_status tr__write_copy(const tr_executor *ex, tr_blocks b, const float *masters,
                         void *rounded, tr_error *err) {
    b.part = TR_PART_COPY;
    tr__convert(ex, TR_F32, masters, b.count, ex->plan->request.compute, rounded);
    return tr__move_blocks(ex, &b, rounded, TR_FROM_HOST, err);
}

tr_status tr__executor_return(tr_executor *executor, const tr_piece *run,
                              tr_error *err) {
    const tr_flat_range *range = tr__range_of(executor, run->param, run->state);
    bool half = is_half(executor, run);
    if (run->count > 0 && tr__is_packed(executor, run)) {
        return tr__packed_return(executor, run, err);
    }
    if (run->count == 0 || (!half && !tr__is_away(executor, range))) {
        return TR_OK;
    }
    if (tr__is_on_device(executor, range)) {
        return tr__device_copy(executor, run->data, device_at(executor, run),
                               run->count * (int64_t)sizeof *run->data, err);
    }
    tr_blocks b = blocks_of(executor, run, 0);
    float *memory = tr__memory(executor, executor->plan->exchange);
    if (half && is_bits(executor, run)) {
        return move_half(executor, &b, TR_FROM_HOST, err);
    }
    if (half) {
        tr_status exact = check_exact(executor, run, err);
        return exact == TR_OK ? narrow_blocks(executor, &b, memory, err) : exact;
    }
    tr_status status = tr__move_blocks(executor, &b, memory, TR_FROM_HOST, err);
    const tr_flat *flat =
        &executor->plan->flats[executor->plan->params[run->param].flat];
    bool rounds = run->state < 0 && tr__copy_is_in_file(executor->plan, flat);
    void *rest = memory + tr__exchange_elements(executor->plan);
    return status == TR_OK && rounds ? tr__write_copy(executor, b, memory, rest, err)
                                     : status;
}
