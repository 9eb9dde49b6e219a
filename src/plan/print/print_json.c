// A plan as one JSON object, a line a step: a plan can have 100,000 of them.
#include "base/half.h"
#include "base/quantized.h"
#include "plan/flow/algorithm.h"
#include "plan/flow/choices.h"
#include "plan/flow/fp8.h"
#include "plan/flow/roles.h"
#include "plan/print/print.h"

#include <stdio.h>

static void write_ledger(const tr_plan *plan, tr_json_writer *to) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "ledger", '{');
    for (int s = 0; s < TR_SPACES; s++) {
        tr__json_line(to, 4);
        tr__json_put_open(to, tr_space_name((tr_space)s), '{');
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            tr__json_put_integer(to, tr_ledger_name((tr_ledger_category)c),
                                 plan->ledger.bytes[s][c]);
        }
        tr__json_put_integer(to, "total", plan->ledger.total[s]);
        tr__json_close(to, '}');
    }
    tr__json_close(to, '}');
}

static void put_pair(tr_json_writer *to, const char *key, int64_t a, int64_t b) {
    tr__json_put_open(to, key, '[');
    tr__json_add_integer(to, a);
    tr__json_add_integer(to, b);
    tr__json_close(to, ']');
}

static void put_if(tr_json_writer *to, const char *key, int64_t value) {
    if (value > 0) {
        tr__json_put_integer(to, key, value);
    }
}

// Of each passing buffer that the step names, offset and bytes. A part of wave tensors
// lies in their buffer.
static void write_buffers(const tr_plan *plan, const tr_plan_step *step,
                          tr_json_writer *to) {
    for (int role = 0; role < TR_OPERAND_ROLES; role++) {
        const tr_step_operand *operand =
            tr__step_find(plan, step, (tr_operand_role)role);
        const tr_buffer *buffer = operand ? &plan->buffers[operand->buffer] : NULL;
        if (buffer && buffer->sequence >= 0) {
            put_pair(to, tr__operand_role_name((tr_operand_role)role), buffer->offset,
                     buffer->bytes);
        }
    }
}

static void write_step(const tr_plan *plan, const tr_plan_step *step,
                       tr_json_writer *to) {
    const tr_step_label *label = &step->label;
    const char *subject = tr__step_subject(plan, step);
    tr__json_open(to, '{');
    tr__json_put_text(to, "kind", tr__verb_name(label->verb));
    tr__json_put_text(to, "stream", tr__stream_name(step->stream));
    if (subject) {
        tr__json_put_text(to, "unit", subject);
    }
    if (label->what) {
        tr__json_put_text(to, "part", label->what);
    }
    if (step->shape == TR_STEP_IS_EXCHANGE) {
        tr__json_put_text(to, "group", tr__axes_name(step->payload.exchange.group));
    }
    for (int s = 0; s < TR_STREAMS; s++) {
        if (tr__plan_is_beside(plan, (tr_stream)s)) {
            put_if(to, tr__streams[s].wait_key, step->wait[s]);
        }
    }
    if (step->shape == TR_STEP_IS_FILE || step->mark == TR_MARK_UPDATE) {
        put_pair(to, "elements", step->first, step->count);
    }
    if (tr__step_is_of_unit(step)) {
        tr__json_put_integer(to, "segment", step->segment);
    }
    if (step->of_micro_batch) {
        tr__json_put_integer(to, "micro_batch", step->micro);
    }
    write_buffers(plan, step, to);
    tr__json_close(to, '}');
}

// ---- repeats

enum {
    FOLDED_FROM = 1 << 14, // steps of a sequence whose repeats are folded
    FOLDED_TIMES = 3,      // at least
    PERIOD_MAX = 1 << 11,
    PERIODS_TRIED = 8
};

// `period` steps, `times` times; with each time micro-batches and waits are so many on.
typedef struct fold {
    size_t period, times;
    int64_t micro;
    int32_t wait[TR_STREAMS];
} fold;

// As it is printed: buffers by where they lie.
static bool same_buffer(const tr_plan *plan, int32_t a, int32_t b) {
    if (a < 0 || b < 0) {
        return a == b;
    }
    const tr_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
    return x->offset == y->offset && x->bytes == y->bytes;
}

static bool same_place(const tr_plan *plan, const tr_plan_step *a,
                       const tr_plan_step *b) {
    bool same = a->label.verb == b->label.verb && a->label.what == b->label.what &&
                a->stream == b->stream && a->unit == b->unit &&
                a->segment == b->segment && a->first == b->first &&
                a->count == b->count &&
                a->payload.operand_count == b->payload.operand_count;
    for (size_t i = 0; same && i < a->payload.operand_count; i++) {
        same = same_buffer(plan, tr__step_operand(plan, a, i)->buffer,
                           tr__step_operand(plan, b, i)->buffer);
    }
    return same;
}

static bool same_waits(const tr_plan_step *a, const tr_plan_step *b, const fold *by) {
    bool same = true;
    for (int s = 0; s < TR_STREAMS; s++) {
        int32_t later = a->wait[s] == 0 ? 0 : a->wait[s] + by->wait[s];
        same = same && b->wait[s] == later;
    }
    return same;
}

static bool is_next(const tr_plan *plan, const tr_plan_step *a, const tr_plan_step *b,
                    const fold *by) {
    bool of_micro = a->of_micro_batch;
    return same_place(plan, a, b) && (!of_micro || b->micro == a->micro + by->micro) &&
           same_waits(a, b, by);
}

// How far on the second time is, by its first steps that say so.
static fold guess(const tr_plan_step *steps, size_t period) {
    fold by = {.period = period, .times = 1};
    for (size_t i = 0; i < period; i++) {
        const tr_plan_step *a = &steps[i], *b = &steps[i + period];
        bool of_micro = by.micro == 0 && a->of_micro_batch;
        by.micro = of_micro ? b->micro - a->micro : by.micro;
        for (int s = 0; s < TR_STREAMS; s++) {
            bool says = by.wait[s] == 0 && a->wait[s] > 0;
            by.wait[s] = says ? b->wait[s] - a->wait[s] : by.wait[s];
        }
    }
    return by;
}

static size_t count_times(const tr_plan *plan, const tr_plan_step *steps, size_t count,
                          const fold *by) {
    size_t i = by->period;
    while (i < count && is_next(plan, &steps[i - by->period], &steps[i], by)) {
        i++;
    }
    return i / by->period;
}

// The shortest repeat at the start of the steps.
static fold find_fold(const tr_plan *plan, const tr_plan_step *steps, size_t count) {
    int tried = 0;
    for (size_t p = 1; p <= PERIOD_MAX && 2 * p <= count && tried < PERIODS_TRIED;
         p++) {
        if (!same_place(plan, &steps[0], &steps[p])) {
            continue;
        }
        fold by = guess(steps, p);
        by.times = count_times(plan, steps, count, &by);
        if (by.times >= FOLDED_TIMES) {
            return by;
        }
        tried++;
    }
    return (fold){.period = 1, .times = 1};
}

static void write_fold(const tr_plan *plan, const tr_plan_step *steps, const fold *by,
                       tr_json_writer *to) {
    tr__json_open(to, '{');
    tr__json_put_integer(to, "repeat", (int64_t)by->times);
    tr__json_put_open(to, "each", '{');
    tr__json_put_integer(to, "micro_batch", by->micro);
    for (int s = 0; s < TR_STREAMS; s++) {
        if (tr__plan_is_beside(plan, (tr_stream)s)) {
            tr__json_put_integer(to, tr__streams[s].wait_key, by->wait[s]);
        }
    }
    tr__json_close(to, '}');
    tr__json_put_open(to, "steps", '[');
    for (size_t i = 0; i < by->period; i++) {
        tr__json_line(to, 6);
        write_step(plan, &steps[i], to);
    }
    tr__json_close(to, ']');
    tr__json_close(to, '}');
}

static void write_steps(const tr_plan *plan, const tr_sequence *sequence,
                        tr_json_writer *to) {
    bool folds = sequence->count >= FOLDED_FROM;
    tr__json_line(to, 2);
    tr__json_put_open(to, "steps", '[');
    for (size_t i = 0; i < sequence->count;) {
        const tr_plan_step *at = &sequence->steps[i];
        fold by = {.period = 1, .times = 1};
        if (folds) {
            by = find_fold(plan, at, sequence->count - i);
        }
        tr__json_line(to, 4);
        if (by.times > 1) {
            write_fold(plan, at, &by, to);
        } else {
            write_step(plan, at, to);
        }
        i += by.period * by.times;
    }
    tr__json_close(to, ']');
}

static void write_request(const tr_plan *plan, tr_json_writer *to) {
    const tr_plan_request *r = &plan->request;
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"ranks", tr_mesh_ranks(&r->mesh)},
                   {"train_batch_size", r->train_batch_size},
                   {"micro_batch", r->micro_batch},
                   {"accumulation_steps", r->accumulation_steps},
                   {"passes", r->passes},
                   {"wave", r->wave},
                   {"alternating", r->alternating},
                   {"stage", r->stage},
                   {"parameters", tr_plan_parameters(plan)},
                   {"trained_parameters", tr_plan_trained(plan)},
                   {"vocabulary_slices", tr__plan_slices(plan)}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        tr__json_line(to, 2);
        tr__json_put_integer(to, numbers[i].key, numbers[i].value);
    }
    tr__json_line(to, 2);
    tr__json_put_open(to, "mesh", '{');
    for (int axis = 0; axis < TR_AXES; axis++) {
        tr__json_put_integer(to, tr_axis_name((tr_axis)axis), r->mesh.size[axis]);
    }
    if (r->mesh.repeats > 1) {
        tr__json_put_integer(to, "repeats", r->mesh.repeats);
    }
    tr__json_close(to, '}');
    if (r->fp8.enabled) {
        tr__json_line(to, 2);
        tr__json_put_integer(to, "fp8_units", tr__plan_fp8_units(plan));
    }
    if (r->quantization) {
        tr__json_line(to, 2);
        tr__json_put_text(to, "quantized_base", tr__quantization_name(r->quantization));
    }
    if (tr__dtype_is_half(r->sums)) {
        tr__json_line(to, 2);
        tr__json_put_text(to, "gradient_sums", tr__half_name(r->sums));
    }
    if (r->optimizer_stays > 0) {
        tr__json_line(to, 2);
        tr__json_put_integer(to, "updated_on_device", tr__plan_staying(plan));
    }
}

static void write_nodes(const tr_plan *plan, tr_json_writer *to) {
    if (tr__plan_nodes(plan) > 1) {
        tr__json_line(to, 2);
        tr__json_put_integer(to, "nodes", tr__plan_nodes(plan));
        tr__json_put_integer(to, "ranks_per_node", plan->request.node_ranks);
        tr__json_put_text(to, "exchange",
                          tr__plan_room(plan).by_nodes ? "hierarchical" : "direct");
    }
}

static void write_exchanges(const tr_plan *plan, tr_json_writer *to) {
    if (tr_mesh_ranks(&plan->request.mesh) > 1) {
        tr__json_line(to, 2);
        tr__json_put_open(to, "exchanges", '{');
        for (int a = TR_EXCHANGE_DIRECT; a < TR_EXCHANGE_ALGORITHMS; a++) {
            tr__json_put_integer(to, tr__algorithm_name((tr_exchange_algorithm)a),
                                 plan->traffic.exchanges[a]);
        }
        tr__json_close(to, '}');
    }
}

static void write_traffic(const tr_plan *plan, tr_json_writer *to) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "traffic_bytes", '{');
    tr__json_put_integer(to, "gather", plan->traffic.gather);
    tr__json_put_integer(to, "reduce", plan->traffic.reduce);
    tr__json_put_integer(to, "between_nodes", plan->traffic.between);
    tr__json_put_integer(to, "device_host", plan->traffic.device_host);
    tr__json_put_integer(to, "reached", plan->traffic.reached);
    tr__json_put_integer(to, "nvme", plan->traffic.nvme);
    tr__json_close(to, '}');
}

// Of a training step on one rank.
static void write_literature(const tr_plan *plan, tr_json_writer *to) {
    tr_model_flops f = tr_plan_model_flops(plan);
    tr__json_line(to, 2);
    tr__json_put_open(to, "model_flops", '{');
    tr__json_put_whole(to, "full", f.full);
    tr__json_put_whole(to, "causal", f.causal);
    tr__json_put_whole(to, "full_again", f.full_again);
    tr__json_put_whole(to, "causal_again", f.causal_again);
    tr__json_close(to, '}');
}

tr_status tr__plan_write_members(const tr_plan *plan, tr_json_writer *to,
                                 tr_error *err) {
    bool inference = plan->request.inference;
    write_request(plan, to);
    write_ledger(plan, to);
    if (plan->stages && tr__has_stages(&plan->request)) {
        tr__stages_write(plan, plan->stages, to);
    }
    write_nodes(plan, to);
    write_exchanges(plan, to);
    write_traffic(plan, to);
    tr__json_line(to, 2);
    tr__json_put_whole(to, "flops", plan->flops);
    write_literature(plan, to);
    tr_status status = tr__kernels_write(plan, to, err);
    if (status == TR_OK) {
        status = tr__functions_write(plan, to, err);
    }
    if (status == TR_OK) {
        status = tr__choices_write(plan, to, err);
    }
    if (status != TR_OK) {
        return status;
    }
    write_steps(plan,
                &plan->sequences[inference ? TR_SEQUENCE_INFERENCE : TR_SEQUENCE_TRAIN],
                to);
    return ferror(to->to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}

tr_status tr__plan_print_json(const tr_plan *plan, FILE *to, tr_error *err) {
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    tr_status status = tr__plan_write_members(plan, &w, err);
    tr__json_line(&w, 0);
    tr__json_close(&w, '}');
    fputc('\n', to);
    return status;
}
