// Steps on flat buffers: gradients folded, their norm, the update.
#include "base/checked.h"
#include "base/clock.h"
#include "base/machine.h"
#include "exec/walk.h"

#include <string.h>

double *tr__own_record(const tr_executor *ex) {
    const tr_plan *plan = ex->plan;
    double *records = tr__memory(ex, plan->record.buffer);
    return records + plan->request.rank * plan->record.doubles;
}

static void clear_gaps(const tr_executor *ex, const tr_plan_step *step) {
    float *grad = tr__memory(ex, step->buffer[TR_SLOT_OUTPUT]);
    int64_t next = 0;
    for (size_t i = 0; i < ex->plan->param_count; i++) { // by offset
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

tr_status tr__run_fold(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    int to = step->buffer[TR_SLOT_OUTPUT];
    int64_t *sums = tr__memory(ex, to < 0 ? flat->sums.buffer : to);
    int bad = ex->fold(tr__memory(ex, step->buffer[TR_SLOT_INPUT]), flat->count,
                       ex->fixed.scale, ex->fixed.limit, !(step->fresh & 1), sums);
    double *record = tr__own_record(ex);
    record[TR_RECORD_TOO_LARGE] += bad & TR_FOLD_TOO_LARGE ? 1 : 0;
    record[TR_RECORD_NOT_FINITE] += bad & TR_FOLD_NOT_FINITE ? 1 : 0;
    return TR_OK;
}

// This rank's gradients [first, first + count) of a flat buffer, as f32: they lie
// there, or are unfolded into `scratch`: [TR_UNFOLD_ELEMENTS].
static const float *grads_at(const tr_executor *ex, const tr_flat *flat, int64_t first,
                             int64_t count, float *scratch) {
    if (!ex->plan->request.reproducible) {
        return tr__kept_f32(ex, &flat->grad, first);
    }
    ex->unfold(tr__kept_i64(ex, &flat->grad, first), count, ex->fixed.scale, scratch);
    return scratch;
}

// How many elements grads_at gives at a time.
static int64_t piece_of(const tr_executor *ex, int64_t left) {
    return ex->plan->request.reproducible ? tr__min_i64(left, TR_UNFOLD_ELEMENTS)
                                          : left;
}

// What other ranks are told beside the sums: how this one fares.
static void note_times(const tr_work *work) {
    const tr_executor *ex = work->ex;
    double *record = tr__own_record(ex);
    record[TR_RECORD_SECONDS] = tr__seconds() - work->begin;
    record[TR_RECORD_WAIT] =
        ex->comm ? tr__comm_totals(ex->comm).wait_seconds - work->waited : 0;
    record[TR_RECORD_PEAK] = (double)tr__process_peak();
}

tr_status tr__run_norm(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    float *scratch = tr__memory(ex, step->buffer[TR_SLOT_TEMP]);
    double *partials = tr__own_record(ex) + ex->plan->record.partials;
    for (size_t f = 0; f < ex->plan->flat_count; f++) {
        const tr_flat *flat = &ex->plan->flats[f];
        for (int64_t done = 0; done < flat->own;) {
            int64_t now = piece_of(ex, flat->own - done);
            ex->norm(grads_at(ex, flat, flat->first + done, now, scratch), now,
                     partials + done / TR_NORM_BLOCK);
            done += now;
        }
        partials += tr__ceil_div(tr__min_i64(flat->shard, flat->count), TR_NORM_BLOCK);
    }
    note_times(work);
    return TR_OK;
}

// Elements [first, first + count) of a flat buffer, of one parameter group.
static void update_piece(const tr_executor *ex, const tr_update_range *range,
                         int64_t first, int64_t count, float *scratch) {
    const tr_update_order *order = &ex->order;
    const tr_flat *flat = &ex->plan->flats[range->flat];
    tr_update update = {
        .param = tr__kept_f32(ex, &flat->master, first),
        .grad = grads_at(ex, flat, first, count, scratch),
        .count = count,
        .grad_scale = order->grad_scale,
        .number = order->number,
        .beta1_power = order->power[range->group][0],
        .beta2_power = order->power[range->group][1],
    };
    for (int s = 0; s < ex->plan->request.optimizer_states; s++) {
        update.state[s] = tr__kept_f32(ex, &flat->state[s], first);
    }
    ex->update(&order->hyper[range->group], &update);
}

// A rank updates what it keeps the optimizer's state of.
tr_status tr__run_update(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    bool shards = tr__plan_stage(ex->plan) > 0;
    int64_t begin = shards ? flat->first : 0;
    int64_t end = shards ? flat->first + flat->own : flat->count;
    for (size_t i = 0; i < ex->order.range_count; i++) {
        const tr_update_range *range = &ex->order.ranges[i];
        if (range->flat != step->unit) {
            continue;
        }
        int64_t first = tr__max_i64(range->offset, begin);
        int64_t last = tr__min_i64(range->offset + range->count, end);
        while (first < last) {
            int64_t now = piece_of(ex, last - first);
            update_piece(ex, range, first, now,
                         tr__memory(ex, step->buffer[TR_SLOT_TEMP]));
            first += now;
        }
    }
    return TR_OK;
}
