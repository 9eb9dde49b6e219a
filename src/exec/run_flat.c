// Steps on flat buffers: gradients folded, their norm, the update.
#include "backend/cpu/half.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/machine.h"
#include "exec/walk.h"
#include "ops/optimizer_measure.h"

#include <math.h>
#include <string.h>

double *tr__own_record(const tr_executor *ex) {
    const tr_plan *plan = ex->plan;
    double *records = tr__memory(ex, plan->record.buffer);
    return records + plan->request.rank * plan->record.doubles;
}

// What lies between the parameters' gradients, or all.
static void clear_gaps(const tr_executor *ex, const tr_plan_step *step) {
    float *grad = tr__memory(ex, step->buffer[TR_SLOT_OUTPUT]);
    size_t kept = step->whole ? 0 : ex->plan->param_count;
    int64_t next = 0;
    for (size_t i = 0; i < kept; i++) { // by offset
        const tr_plan_param *param = &ex->plan->params[i];
        if (param->flat == step->unit) {
            memset(grad + next, 0, (size_t)(param->offset - next) * sizeof *grad);
            next = param->offset + param->count;
        }
    }
    int64_t rest = ex->plan->flats[step->unit].count - next;
    memset(grad + next, 0, (size_t)rest * sizeof *grad);
}

tr_status tr__run_clear(tr_work *work, const tr_plan_step *step) {
    if (step->part == TR_PART_GRAD) {
        clear_gaps(work->ex, step);
        return TR_OK;
    }
    // Partial sums are written, never added to.
    memset(tr__own_record(work->ex), 0,
           (size_t)work->ex->plan->record.partials * sizeof(double));
    return TR_OK;
}

// Piece by piece, each summed by blocks and in one order.
static double squares_of(const tr_executor *ex, const float *x, int64_t count) {
    enum { BLOCKS = 512 };
    double partials[BLOCKS], sum = 0;
    for (int64_t done = 0; done < count;) {
        int64_t now = tr__min_i64(count - done, (int64_t)BLOCKS * TR_NORM_BLOCK);
        ex->norm(x + done, now, partials);
        sum = tr__norm_sum(sum, partials, tr__ceil_div(now, TR_NORM_BLOCK));
        done += now;
    }
    return sum;
}

tr_status tr__run_gauge(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_unit_program *unit = ex->plan->units[step->unit].program;
    const char *grads = tr__memory(ex, ex->plan->bindings[step->binding].grad[0]);
    const tr_operand *operand;
    int64_t count;
    size_t next = 0;
    while ((operand = tr__gauge_next(unit, step->segment, &next, &count)) != NULL) {
        const void *x = grads + operand->offset;
        tr__own_record(ex)[TR_RECORD_SQUARES] += squares_of(ex, x, count);
    }
    return TR_OK;
}

tr_status tr__run_gauge_tied(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    int from = step->buffer[TR_SLOT_INPUT];
    const float *x = tr__memory(ex, from < 0 ? flat->sums.buffer : from);
    tr__own_record(ex)[TR_RECORD_TIED_SQUARES] += squares_of(ex, x, flat->count);
    return TR_OK;
}

static void fold_fixed(const tr_executor *ex, const float *x, int64_t count, bool add,
                       int64_t *sums) {
    int bad = ex->fold(x, count, ex->fixed.scale, ex->fixed.limit, add, sums);
    double *record = tr__own_record(ex);
    record[TR_RECORD_TOO_LARGE] += bad & TR_FOLD_TOO_LARGE ? 1 : 0;
    record[TR_RECORD_NOT_FINITE] += bad & TR_FOLD_NOT_FINITE ? 1 : 0;
}

// What does not fit 16 bits becomes infinite, which the norm shows.
tr_status tr__run_fold(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_plan_request *r = &ex->plan->request;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    int to = step->buffer[TR_SLOT_OUTPUT];
    bool add = !(step->writes & tr__slot_bit(TR_SLOT_OUTPUT));
    const float *x = tr__memory(ex, step->buffer[TR_SLOT_INPUT]);
    void *sums = tr__memory(ex, to < 0 ? flat->sums.buffer : to);
    if (r->sums == TR_I64) {
        fold_fixed(ex, x, flat->count, add, sums);
    } else {
        (add ? tr__half_add : tr__half_narrow)(r->sums, x, flat->count, r->threads,
                                               sums);
    }
    return TR_OK;
}

// Gradients from element `first` on, of the type of the sums.
typedef struct gradients {
    const void *memory;
    int64_t first;
} gradients;

// [first, first + count) of them as f32: they lie there, or are turned into that in
// `scratch`: [TR_UNFOLD_ELEMENTS].
static const float *grads_at(const tr_executor *ex, const gradients *grads,
                             int64_t first, int64_t count, float *scratch) {
    const tr_plan_request *r = &ex->plan->request;
    int64_t at = first - grads->first;
    if (r->sums == TR_F32) {
        return (const float *)grads->memory + at;
    }
    if (r->sums == TR_I64) {
        ex->unfold((const int64_t *)grads->memory + at, count, ex->fixed.scale,
                   scratch);
    } else {
        tr__half_widen(r->sums, (const uint16_t *)grads->memory + at, count, r->threads,
                       scratch);
    }
    return scratch;
}

// How many elements grads_at gives at a time; of what is rounded, too, as many as are
// still in the cache then.
static int64_t piece_of(const tr_executor *ex, int64_t left) {
    return tr__plan_folds(ex->plan) || tr__plan_is_half(ex->plan)
               ? tr__min_i64(left, TR_UNFOLD_ELEMENTS)
               : left;
}

// The squares of this rank's gradients, block by block.
static void square(const tr_executor *ex, const tr_flat *flat, const gradients *grads,
                   float *scratch) {
    double *partials = tr__own_record(ex) + ex->plan->record.partials;
    for (const tr_flat *f = ex->plan->flats; f < flat; f++) {
        partials += tr__ceil_div(tr__min_i64(f->shard, f->count), TR_NORM_BLOCK);
    }
    for (int64_t done = 0; done < flat->own;) {
        int64_t now = piece_of(ex, flat->own - done);
        ex->norm(grads_at(ex, grads, flat->first + done, now, scratch), now,
                 partials + done / TR_NORM_BLOCK);
        done += now;
    }
}

// What leaves is this rank's part, or lies in the sums that stay.
tr_status tr__run_square(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    int from = step->buffer[TR_SLOT_INPUT];
    gradients grads = {tr__memory(ex, from < 0 ? flat->sums.buffer : from),
                       from < 0 ? flat->sums.first : flat->first};
    square(ex, flat, &grads, tr__memory(ex, step->buffer[TR_SLOT_TEMP]));
    return TR_OK;
}

// What other ranks are told beside the sums: how this one fares.
static void note_times(const tr_work *work) {
    const tr_executor *ex = work->ex;
    double *record = tr__own_record(ex);
    record[TR_RECORD_ASKED] = fmax(record[TR_RECORD_ASKED], ex->asks_save);
    record[TR_RECORD_SECONDS] = tr__seconds() - work->begin;
    record[TR_RECORD_WAIT] =
        ex->comm ? tr__comm_totals(ex->comm).wait_seconds - work->waited : 0;
    record[TR_RECORD_PEAK] = (double)tr__process_peak();
}

tr_status tr__run_norm(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    for (size_t f = 0; f < ex->plan->flat_count; f++) {
        const tr_flat *flat = &ex->plan->flats[f];
        gradients grads = {tr__memory(ex, flat->grad.buffer), flat->grad.first};
        if (grads.memory) { // else their squares were taken when they left
            square(ex, flat, &grads, tr__memory(ex, step->buffer[TR_SLOT_TEMP]));
        }
    }
    note_times(work);
    return TR_OK;
}

// Where an update finds a part of its flat buffer, from element `first` on.
typedef struct part {
    void *memory;
    int64_t first;
} part;

// In its place, or staged.
static part part_of(const tr_executor *ex, const tr_plan_step *step, tr_part which) {
    const tr_flat_range *range = tr__flat_range(&ex->plan->flats[step->unit], which);
    return tr__is_on_nvme(ex->plan, range)
               ? (part){tr__memory(ex, step->buffer[TR_SLOT_PART + which]), step->first}
               : (part){tr__memory(ex, range->buffer), range->first};
}

static float *element_of(part in, int64_t element) {
    return (float *)in.memory + (element - in.first);
}

void tr__round_copy(const tr_executor *ex, const tr_flat *flat, int64_t first,
                    int64_t count) {
    bool here = !tr__part_is_on_nvme(ex->plan, TR_PART_COPY);
    if (tr__plan_is_half(ex->plan) && here && count > 0) {
        tr__half_narrow(
            ex->plan->request.compute, tr__kept_f32(ex, &flat->master, first), count,
            ex->plan->request.threads, tr__kept_param(ex, &flat->copy, first));
    }
}

// A piece of an update: elements of one range, from element `first` of its flat buffer
// on.
typedef struct piece {
    const tr_executor *ex;
    const tr_plan_step *step;
    const tr_update_range *range;
    tr_update update;
    int64_t first;
} piece;

static piece piece_make(const tr_executor *ex, const tr_plan_step *step,
                        const tr_update_range *range, int64_t first, int64_t count) {
    const tr_update_order *order = &ex->order;
    part grad = part_of(ex, step, TR_PART_GRAD);
    gradients grads = {grad.memory, grad.first};
    float *scratch = tr__memory(ex, step->buffer[TR_SLOT_TEMP]);
    tr_update update = {
        .param = element_of(part_of(ex, step, TR_PART_PARAM), first),
        .grad = grads_at(ex, &grads, first, count, scratch),
        .count = count,
        .grad_scale = order->grad_scale,
        .number = order->number,
        .beta1_power = order->power[range->group][0],
        .beta2_power = order->power[range->group][1],
    };
    for (int s = 0; s < ex->plan->request.optimizer_states; s++) {
        part state = part_of(ex, step, (tr_part)(TR_PART_STATE + s));
        update.state[s] = element_of(state, first);
    }
    return (piece){ex, step, range, update, first};
}

// How many elements from `first` on are taken at a time, of so many that are left:
// blocks of the norm are not cut.
static int64_t whole_blocks(const tr_executor *ex, int64_t first, int64_t left) {
    int64_t now = piece_of(ex, left);
    return now < left ? now - (first + now) % TR_NORM_BLOCK : now;
}

static void each_piece(const tr_executor *ex, const tr_plan_step *step,
                       void (*visit)(const piece *piece)) {
    for (size_t i = 0; i < ex->order.range_count; i++) {
        const tr_update_range *range = &ex->order.ranges[i];
        if (range->flat != step->unit) {
            continue;
        }
        int64_t first = tr__max_i64(range->offset, step->first);
        int64_t last =
            tr__min_i64(range->offset + range->count, step->first + step->count);
        while (first < last) {
            int64_t now = whole_blocks(ex, first, last - first);
            piece at = piece_make(ex, step, range, first, now);
            visit(&at);
            first += now;
        }
    }
}

// Its group's numbers.
static tr_hyper hyper_of(const piece *at) {
    tr_hyper hyper = at->ex->order.hyper[at->range->group];
    hyper.weight_decay = at->range->undecayed ? 0 : hyper.weight_decay;
    return hyper;
}

static void measure_piece(const piece *at) {
    const tr_executor *ex = at->ex;
    const tr_hyper hyper = hyper_of(at);
    const tr_plan_param *param = &ex->plan->params[at->range->param];
    tr_squares *parts = tr__memory(ex, at->step->buffer[TR_SLOT_NORMS]);
    int64_t where = tr__norms_part(ex->plan, param, at->first / TR_NORM_BLOCK);
    tr__optimizer_measure(ex->direct, ex->norm, &hyper, &at->update, at->first,
                          parts + where);
}

tr_status tr__run_measure(tr_work *work, const tr_plan_step *step) {
    each_piece(work->ex, step, measure_piece);
    return TR_OK;
}

// A tensor's parts one after the other, whichever ranks have measured them.
tr_status tr__run_total(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_plan *plan = ex->plan;
    const tr_squares *parts = tr__memory(ex, step->buffer[TR_SLOT_INPUT]);
    tr_squares *totals = tr__memory(ex, step->buffer[TR_SLOT_OUTPUT]);
    memset(totals, 0, plan->param_count * sizeof *totals);
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        tr_squares *total = &totals[param->tensor];
        int64_t first = param->offset / TR_NORM_BLOCK;
        int64_t blocks = tr__measure_parts(param->offset, param->count);
        for (int64_t b = first; b < first + blocks; b++) {
            const tr_squares *at = &parts[tr__norms_part(plan, param, b)];
            total->param += at->param;
            total->direction += at->direction;
        }
    }
    return TR_OK;
}

static double trust_of(const piece *at, const tr_hyper *hyper) {
    const tr_executor *ex = at->ex;
    const tr_adaptation *adaptation = ex->order.optimizer->adaptation;
    const tr_squares *totals = tr__memory(ex, at->step->buffer[TR_SLOT_NORMS]);
    if (!adaptation || !at->range->adapts) {
        return 1;
    }
    const tr_squares *total = &totals[ex->plan->params[at->range->param].tensor];
    return adaptation->trust(hyper, sqrt(total->param), sqrt(total->direction));
}

static void update_piece(const piece *at) {
    const tr_hyper hyper = hyper_of(at);
    tr_update update = at->update;
    update.trust = trust_of(at, &hyper);
    at->ex->update(&hyper, &update);
    tr__round_copy(at->ex, &at->ex->plan->flats[at->step->unit], at->first,
                   update.count);
}

// What goes to NVMe is rounded with what lies between the tensors.
static void round_staged(const tr_executor *ex, const tr_plan_step *step) {
    const float *master = element_of(part_of(ex, step, TR_PART_PARAM), step->first);
    void *copy = tr__memory(ex, step->buffer[TR_SLOT_PART + TR_PART_COPY]);
    if (copy) {
        tr__half_narrow(ex->plan->request.compute, master, step->count,
                        ex->plan->request.threads, copy);
    }
}

tr_status tr__run_update(tr_work *work, const tr_plan_step *step) {
    each_piece(work->ex, step, update_piece);
    round_staged(work->ex, step);
    return TR_OK;
}
