// Parameters and optimizer states as those see them who begin, save and resume a run:
// in memory, or on NVMe or in 16 bits alone and brought a run of elements at a time.
#include "backend/cpu/half.h"
#include "base/checked.h"
#include "exec/walk.h"
#include "plan/residency.h"

#include <math.h>
#include <string.h>

static bool is_on_device(const tr_executor *ex, const tr_flat_range *range) {
    return ex->plan->request.discrete && range->buffer >= 0 &&
           ex->plan->buffers[range->buffer].space == TR_SPACE_DEVICE;
}

// Does the host see it only through the exchange?
static bool is_away(const tr_executor *ex, const tr_flat_range *range) {
    return tr__is_on_nvme(ex->plan, range) || is_on_device(ex, range);
}

static const tr_flat_range *range_of(const tr_executor *ex, int param, int state) {
    const tr_flat *flat = &ex->plan->flats[ex->plan->params[param].flat];
    return state < 0 ? &flat->master : &flat->state[state];
}

// What of elements [first, first + count) of its flat buffer is the parameter's.
static tr_piece piece_of(const tr_executor *ex, int param, int state, int64_t first,
                         int64_t count) {
    const tr_plan_param *info = &ex->plan->params[param];
    int64_t begin = tr__max_i64(info->offset, first);
    int64_t end = tr__min_i64(info->offset + info->count, first + count);
    const tr_flat_range *range = range_of(ex, param, state);
    bool none = range->buffer < 0 && state >= 0; // frozen
    if (begin >= end || none) {
        return (tr_piece){.data = NULL};
    }
    bool here = range->buffer >= 0 && !is_away(ex, range);
    return (tr_piece){.data = here ? tr__kept_f32(ex, range, begin) : NULL,
                      .first = info->first + begin - info->offset,
                      .count = end - begin,
                      .param = param,
                      .state = state};
}

float *tr__executor_param(tr_executor *executor, int param, int state) {
    const tr_flat_range *range = range_of(executor, param, state);
    tr_piece piece = piece_of(executor, param, state, range->first, range->count);
    return piece.count == executor->plan->params[param].count ? piece.data : NULL;
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
    return plan->request.sums == TR_F32 && !is_on_device(executor, &flat->grad)
               ? sums_of(executor, param)
               : NULL;
}

// Bytes between the memory of the device and the host's.
static tr_status copy_bytes(const tr_executor *ex, const void *from, void *to,
                            int64_t bytes, tr_error *err) {
    tr_carrier *carrier = ex->carrier[TR_STREAM_COPY];
    tr_carry order = {.kind = TR_CARRY_COPY,
                      .from = tr__backend_reach(ex->backend, (void *)from),
                      .to = tr__backend_reach(ex->backend, to),
                      .bytes = bytes};
    return tr__carrier_wait(carrier, tr__carrier_start(carrier, &order), err);
}

static void read_sums(const tr_plan_request *r, const void *sums, int64_t count,
                      float *values) {
    if (r->sums == TR_F32) {
        memcpy(values, sums, (size_t)count * sizeof *values);
    } else {
        tr__half_widen(r->sums, sums, count, r->threads, values);
    }
}

// By way of the exchange.
static bool read_device_sums(const tr_executor *ex, const char *sums, int64_t count,
                             float *values) {
    int64_t element = tr__sum_bytes(ex->plan), most = tr__exchange_elements(ex->plan);
    void *here = tr__memory(ex, ex->plan->exchange);
    for (int64_t done = 0; done < count; done += most) {
        int64_t part = tr__min_i64(most, count - done);
        if (copy_bytes(ex, sums + done * element, here, part * element, NULL) !=
            TR_OK) {
            return false;
        }
        read_sums(&ex->plan->request, here, part, values + done);
    }
    return true;
}

bool tr__executor_read_grad(const tr_executor *executor, int param, int64_t first,
                            int64_t count, float *values) {
    const tr_plan_request *r = &executor->plan->request;
    const char *sums = sums_of(executor, param);
    if (!sums || r->sums == TR_I64) { // whose scale only the step knows
        return false;
    }
    const tr_plan_param *info = &executor->plan->params[param];
    sums += first * tr__sum_bytes(executor->plan);
    if (is_on_device(executor, &executor->plan->flats[info->flat].grad)) {
        return read_device_sums(executor, sums, count, values);
    }
    read_sums(r, sums, count, values);
    return true;
}

// Parameters that every rank keeps come by gathering, but for this rank's part; frozen
// ones never do.
tr_piece tr__executor_held(tr_executor *executor, int param, int state) {
    const tr_plan *plan = executor->plan;
    bool frozen = plan->flats[plan->params[param].flat].frozen;
    const tr_flat_range *range = range_of(executor, param, state);
    return tr__plan_stage(plan) > 0 && !frozen
               ? tr__executor_own(executor, param, state)
               : piece_of(executor, param, state, range->first, range->count);
}

tr_piece tr__executor_own(tr_executor *executor, int param, int state) {
    const tr_flat *flat = &executor->plan->flats[executor->plan->params[param].flat];
    return piece_of(executor, param, state, flat->first, flat->own);
}

// ---- a run at a time
// -----------------------------------------------------------------

typedef enum direction { FROM_FILE, TO_FILE } direction;

// The blocks in which element `at` of the parameter's piece lies first.
typedef struct blocks {
    const tr_flat *flat;
    tr_part part;
    int64_t first, count; // elements of the flat buffer, whole blocks
    int64_t element;      // of the flat buffer: `at`
} blocks;

// Where element `element` of a flat buffer's part is in the file, in bytes.
static int64_t stored_at(const tr_plan *plan, const tr_flat *flat, tr_part part,
                         int64_t element) {
    const tr_flat_range *range = tr__flat_range(flat, part);
    return plan->buffers[range->buffer].offset +
           tr__nvme_bytes(plan, part, element - range->first);
}

// Whole blocks of a part, between the file and memory.
static tr_status move_blocks(const tr_executor *ex, const blocks *b, void *memory,
                             direction way, tr_error *err) {
    tr_carrier *carrier = ex->carrier[TR_STREAM_NVME];
    tr_carry order = {.kind = way == FROM_FILE ? TR_CARRY_READ : TR_CARRY_WRITE,
                      .from = way == FROM_FILE ? NULL : memory,
                      .to = way == FROM_FILE ? memory : NULL,
                      .bytes = tr__nvme_bytes(ex->plan, b->part, b->count),
                      .offset = stored_at(ex->plan, b->flat, b->part, b->first)};
    return tr__carrier_wait(carrier, tr__carrier_start(carrier, &order), err);
}

static blocks blocks_of(const tr_executor *ex, const tr_piece *piece, int64_t at) {
    const tr_plan_param *info = &ex->plan->params[piece->param];
    const tr_flat *flat = &ex->plan->flats[info->flat];
    const tr_flat_range *range = range_of(ex, piece->param, piece->state);
    int64_t block = tr__nvme_elements(ex->plan, tr__used_part(ex->plan));
    blocks b = {.flat = flat};
    b.part = piece->state >= 0        ? (tr_part)(TR_PART_STATE + piece->state)
             : tr__flat_is_half(flat) ? TR_PART_COPY
                                      : TR_PART_PARAM;
    b.element = info->offset + piece->first - info->first + at;
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
static void *half_blocks(const tr_executor *ex, const blocks *b) {
    float *memory = tr__memory(ex, ex->plan->exchange);
    return tr__copy_is_in_file(ex->plan, b->flat) || is_on_device(ex, &b->flat->copy)
               ? (void *)(memory + tr__exchange_elements(ex->plan))
               : tr__kept_param(ex, &b->flat->copy, b->first);
}

static tr_status move_half(const tr_executor *ex, const blocks *b, direction way,
                           tr_error *err) {
    void *half = half_blocks(ex, b);
    if (tr__copy_is_in_file(ex->plan, b->flat)) {
        return move_blocks(ex, b, half, way, err);
    }
    if (!is_on_device(ex, &b->flat->copy)) {
        return TR_OK;
    }
    void *device = tr__kept_param(ex, &b->flat->copy, b->first);
    bool reads = way == FROM_FILE;
    return copy_bytes(ex, reads ? device : half, reads ? half : device,
                      b->count * tr__param_bytes(ex->plan), err);
}

static tr_status widen_blocks(const tr_executor *ex, const blocks *b, float *memory,
                              tr_error *err) {
    void *half = half_blocks(ex, b);
    tr_status status = move_half(ex, b, FROM_FILE, err);
    if (status == TR_OK) {
        tr__half_widen(ex->plan->request.compute, half, b->count,
                       ex->plan->request.threads, memory);
    }
    return status;
}

static tr_status narrow_blocks(const tr_executor *ex, const blocks *b,
                               const float *memory, tr_error *err) {
    void *half = half_blocks(ex, b);
    tr__half_narrow(ex->plan->request.compute, memory, b->count,
                    ex->plan->request.threads, half);
    return move_half(ex, b, TO_FILE, err);
}

// Nothing would be rounded.
static tr_status check_exact(const tr_executor *ex, const tr_piece *run,
                             tr_error *err) {
    enum { MANY = 256 };
    tr_dtype type = ex->plan->request.compute;
    for (int64_t at = 0; at < run->count; at += MANY) {
        uint16_t half[MANY];
        float back[MANY];
        int64_t count = tr__min_i64(MANY, run->count - at);
        tr__half_narrow(type, run->data + at, count, 1, half);
        tr__half_widen(type, half, count, 1, back);
        for (int64_t i = 0; i < count; i++) {
            bool nan = isnan(back[i]) && isnan(run->data[at + i]);
            if (back[i] != run->data[at + i] && !nan) {
                return tr_fail(err, TR_IO,
                               "%s is frozen and kept in %s alone, as its file has it, "
                               "and is to be %.9g, which %s cannot hold",
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
    return tr__kept_f32(ex, range_of(ex, piece->param, piece->state),
                        info->offset + piece->first - info->first);
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
    float *memory = tr__memory(executor, executor->plan->exchange);
    if (is_on_device(executor, range_of(executor, piece->param, piece->state))) {
        run->data = memory;
        run->count = tr__min_i64(run->count, tr__exchange_elements(executor->plan));
        return copy_bytes(executor, device_at(executor, run), memory,
                          run->count * (int64_t)sizeof *memory, err);
    }
    blocks b = blocks_of(executor, piece, at);
    run->data = memory + (b.element - b.first);
    run->count = tr__min_i64(run->count, b.first + b.count - b.element);
    return is_half(executor, piece) ? widen_blocks(executor, &b, memory, err)
                                    : move_blocks(executor, &b, memory, FROM_FILE, err);
}

// What the masters of these blocks are rounded to, by way of `rounded`.
static tr_status write_copy(const tr_executor *ex, blocks b, const float *masters,
                            void *rounded, tr_error *err) {
    b.part = TR_PART_COPY;
    tr__half_narrow(ex->plan->request.compute, masters, b.count,
                    ex->plan->request.threads, rounded);
    return move_blocks(ex, &b, rounded, TO_FILE, err);
}

tr_status tr__executor_return(tr_executor *executor, const tr_piece *run,
                              tr_error *err) {
    const tr_flat_range *range = range_of(executor, run->param, run->state);
    bool half = is_half(executor, run);
    if (run->count == 0 || (!half && !is_away(executor, range))) {
        return TR_OK;
    }
    if (is_on_device(executor, range)) {
        return copy_bytes(executor, run->data, device_at(executor, run),
                          run->count * (int64_t)sizeof *run->data, err);
    }
    blocks b = blocks_of(executor, run, 0);
    float *memory = tr__memory(executor, executor->plan->exchange);
    if (half) {
        tr_status exact = check_exact(executor, run, err);
        return exact == TR_OK ? narrow_blocks(executor, &b, memory, err) : exact;
    }
    tr_status status = move_blocks(executor, &b, memory, TO_FILE, err);
    const tr_flat *flat =
        &executor->plan->flats[executor->plan->params[run->param].flat];
    bool rounds = run->state < 0 && tr__copy_is_in_file(executor->plan, flat);
    void *rest = memory + tr__exchange_elements(executor->plan);
    return status == TR_OK && rounds ? write_copy(executor, b, memory, rest, err)
                                     : status;
}

// ---- what units compute with
// ----------------------------------------------------------

// Masters of these elements where the host sees them; those of a discrete device are
// brought into the exchange, behind which `*rounded` then points.
static tr_status see_masters(const tr_executor *ex, const blocks *b,
                             const float **masters, void **rounded, tr_error *err) {
    float *memory = tr__memory(ex, ex->plan->exchange);
    *masters = tr__kept_f32(ex, &b->flat->master, b->first);
    *rounded = memory;
    if (!is_on_device(ex, &b->flat->master)) {
        return TR_OK;
    }
    tr_status status =
        copy_bytes(ex, *masters, memory, b->count * (int64_t)sizeof *memory, err);
    *masters = memory;
    *rounded = memory + tr__exchange_elements(ex->plan);
    return status;
}

// Masters in memory, whose copies are on NVMe: rounded and written in whole blocks.
static tr_status write_copies(const tr_executor *ex, const tr_flat *flat, int64_t first,
                              int64_t end, tr_error *err) {
    const tr_plan *plan = ex->plan;
    int64_t block = tr__nvme_elements(plan, TR_PART_COPY), from = flat->copy.first;
    tr_status status = TR_OK;
    first -= (first - from) % block;
    end = tr__min_i64(from + tr__round_up(end - from, block), from + flat->copy.count);
    while (first < end && status == TR_OK) {
        int64_t count = tr__min_i64(end - first, tr__exchange_elements(plan));
        blocks b = {.flat = flat, .first = first, .count = count};
        const float *masters = NULL;
        void *rounded = NULL;
        status = see_masters(ex, &b, &masters, &rounded, err);
        if (status == TR_OK) {
            status = write_copy(ex, b, masters, rounded, err);
        }
        first += count;
    }
    return status;
}

// Of elements [first, end) of a flat buffer those that this rank keeps masters of.
static tr_status round_range(const tr_executor *ex, const tr_flat *flat, int64_t first,
                             int64_t end, tr_error *err) {
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
    tr__round_copy(ex, flat, first, end - first);
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
