// A plan as one JSON object. Written by hand, a line a step: a plan can have 100,000 of
// them, and every text in it is a number or a name that is escaped here.
#include "backend/cpu/half.h"
#include "base/text.h"
#include "plan/choices.h"

#include <inttypes.h>

static void print_ledger(const tr_plan *plan, FILE *to) {
    fprintf(to, "  \"ledger\": {");
    for (int s = 0; s < TR_SPACES; s++) {
        fprintf(to, "%s\n    \"%s\": {", s ? "," : "", tr_space_name((tr_space)s));
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            fprintf(to, "\"%s\": %" PRId64 ", ", tr_ledger_name((tr_ledger_category)c),
                    plan->ledger.bytes[s][c]);
        }
        fprintf(to, "\"total\": %" PRId64 "}", plan->ledger.total[s]);
    }
    fprintf(to, "},\n");
}

static void print_step(const tr_plan *plan, const tr_plan_step *step, FILE *to) {
    static const char *const slots[TR_SLOTS] = {"input",       "output", "input_grad",
                                                "output_grad", "saved",  "wave",
                                                "wave_grad",   "temp",   "norms"};
    bool transfers = step->kind == TR_STEP_read || step->kind == TR_STEP_write;
    const char *subject = tr__step_subject(plan, step);
    fprintf(to, "{\"kind\": \"%s\", \"stream\": \"%s\"", tr__plan_step_name(step->kind),
            tr__stream_name(step->stream));
    if (subject) {
        fprintf(to, ", \"unit\": \"");
        tr__print_escaped(subject, to);
        fputc('"', to);
    }
    if (step->kind == TR_STEP_gather || transfers) {
        fprintf(to, ", \"part\": \"%s\"", tr__part_name(step->part));
    }
    if (step->wait > 0) {
        fprintf(to, ", \"wait\": %d", (int)step->wait);
    }
    if (step->wait_copy > 0) {
        fprintf(to, ", \"wait_copy\": %d", (int)step->wait_copy);
    }
    if (step->wait_nvme > 0) {
        fprintf(to, ", \"wait_nvme\": %d", (int)step->wait_nvme);
    }
    if (transfers || step->kind == TR_STEP_update) {
        fprintf(to, ", \"elements\": [%" PRId64 ", %" PRId64 "]", step->first,
                step->count);
    }
    if (tr__step_is_of_unit(step)) {
        fprintf(to, ", \"segment\": %d", (int)step->segment);
    }
    if (tr__step_is_of_micro_batch(step)) {
        fprintf(to, ", \"micro_batch\": %" PRId64, step->micro);
    }
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        if (step->buffer[slot] >= 0) {
            const tr_buffer *buffer = &plan->buffers[step->buffer[slot]];
            fprintf(to, ", \"%s%s\": [%" PRId64 ", %" PRId64 "]",
                    slots[slot] ? "" : "staged ",
                    slots[slot] ? slots[slot]
                                : tr__part_name((tr_part)(slot - TR_SLOT_PART)),
                    buffer->offset, buffer->bytes);
        }
    }
    fputc('}', to);
}

// ---- repeats
// -------------------------------------------------------------------------

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
    int32_t wait, wait_copy, wait_nvme;
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
    bool same = a->kind == b->kind && a->stream == b->stream && a->unit == b->unit &&
                a->segment == b->segment && a->part == b->part &&
                a->first == b->first && a->count == b->count;
    for (int slot = 0; same && slot < TR_SLOTS; slot++) {
        same = same_buffer(plan, a->buffer[slot], b->buffer[slot]);
    }
    return same;
}

static bool same_wait(int32_t a, int32_t b, int32_t on) {
    return a == 0 ? b == 0 : b == a + on;
}

static bool is_next(const tr_plan *plan, const tr_plan_step *a, const tr_plan_step *b,
                    const fold *by) {
    bool of_micro = tr__step_is_of_micro_batch(a);
    return same_place(plan, a, b) && (!of_micro || b->micro == a->micro + by->micro) &&
           same_wait(a->wait, b->wait, by->wait) &&
           same_wait(a->wait_copy, b->wait_copy, by->wait_copy) &&
           same_wait(a->wait_nvme, b->wait_nvme, by->wait_nvme);
}

// How far on the second time is, by its first steps that say so.
static fold guess(const tr_plan_step *steps, size_t period) {
    fold by = {.period = period, .times = 1};
    for (size_t i = 0; i < period; i++) {
        const tr_plan_step *a = &steps[i], *b = &steps[i + period];
        bool of_micro = by.micro == 0 && tr__step_is_of_micro_batch(a);
        by.micro = of_micro ? b->micro - a->micro : by.micro;
        by.wait = by.wait == 0 && a->wait > 0 ? b->wait - a->wait : by.wait;
        by.wait_copy = by.wait_copy == 0 && a->wait_copy > 0
                           ? b->wait_copy - a->wait_copy
                           : by.wait_copy;
        by.wait_nvme = by.wait_nvme == 0 && a->wait_nvme > 0
                           ? b->wait_nvme - a->wait_nvme
                           : by.wait_nvme;
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

static void print_fold(const tr_plan *plan, const tr_plan_step *steps, const fold *by,
                       FILE *to) {
    fprintf(to,
            "{\"repeat\": %zu, \"each\": {\"micro_batch\": %" PRId64
            ", \"wait\": %d, \"wait_copy\": %d, \"wait_nvme\": %d}, \"steps\": [",
            by->times, by->micro, (int)by->wait, (int)by->wait_copy,
            (int)by->wait_nvme);
    for (size_t i = 0; i < by->period; i++) {
        fprintf(to, i ? ",\n      " : "\n      ");
        print_step(plan, &steps[i], to);
    }
    fprintf(to, "]}");
}

static void print_steps(const tr_plan *plan, const tr_sequence *sequence, FILE *to) {
    bool folds = sequence->count >= FOLDED_FROM;
    for (size_t i = 0; i < sequence->count;) {
        const tr_plan_step *at = &sequence->steps[i];
        fold by = {.period = 1, .times = 1};
        if (folds) {
            by = find_fold(plan, at, sequence->count - i);
        }
        fprintf(to, i ? ",\n    " : "\n    ");
        if (by.times > 1) {
            print_fold(plan, at, &by, to);
        } else {
            print_step(plan, at, to);
        }
        i += by.period * by.times;
    }
}

tr_status tr__plan_print_members(const tr_plan *plan, FILE *to, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_sequence_kind kind = r->inference ? TR_SEQUENCE_ANSWER : TR_SEQUENCE_TRAIN;
    const tr_sequence *sequence = &plan->sequences[kind];
    fprintf(to,
            "  \"ranks\": %" PRId64 ",\n  \"train_batch_size\": %" PRId64
            ",\n  \"micro_batch\": %" PRId64 ",\n  \"accumulation_steps\": %" PRId64
            ",\n  \"wave\": %" PRId64 ",\n  \"stage\": %d,\n  \"parameters\": %" PRId64
            ",\n  \"vocabulary_slices\": %d,\n",
            r->ranks, r->train_batch_size, r->micro_batch, r->accumulation_steps,
            r->wave, r->stage, tr_plan_parameters(plan), tr__plan_slices(plan));
    if (tr__dtype_is_half(r->sums)) {
        fprintf(to, "  \"gradient_sums\": \"%s\",\n", tr__half_name(r->sums));
    }
    if (r->optimizer_stays > 0) {
        fprintf(to, "  \"updated_on_device\": %" PRId64 ",\n", tr__plan_staying(plan));
    }
    print_ledger(plan, to);
    fprintf(to,
            "  \"traffic_bytes\": {\"gather\": %" PRId64 ", \"reduce\": %" PRId64
            ", \"device_host\": %" PRId64 ", \"reached\": %" PRId64
            ", \"nvme\": %" PRId64 "},\n",
            plan->traffic.gather, plan->traffic.reduce, plan->traffic.device_host,
            plan->traffic.reached, plan->traffic.nvme);
    // Beyond 2^53 with an exponent: readers of JSON take long integers for int64.
    fprintf(to, plan->flops < 0x1p53 ? "  \"flops\": %.0f,\n" : "  \"flops\": %.16e,\n",
            plan->flops);
    tr_status status = tr__choices_print_json(plan, to, err);
    if (status != TR_OK) {
        return status;
    }
    fprintf(to, "  \"steps\": [");
    print_steps(plan, sequence, to);
    fprintf(to, "]\n");
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}

tr_status tr_plan_print_json(const tr_plan *plan, FILE *to, tr_error *err) {
    fprintf(to, "{\n");
    tr_status status = tr__plan_print_members(plan, to, err);
    fprintf(to, "}\n");
    return status;
}
