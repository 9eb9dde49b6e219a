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
                                                "wave_grad",   "temp"};
    static const char *const parts[] = {"parameters", "gradients", "record",  "state 0",
                                        "state 1",    "norms",     "boundary"};
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
        fprintf(to, ", \"part\": \"%s\"", parts[step->part]);
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
            fprintf(to, ", \"%s\": [%" PRId64 ", %" PRId64 "]", slots[slot],
                    buffer->offset, buffer->bytes);
        }
    }
    fputc('}', to);
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
    for (size_t i = 0; i < sequence->count; i++) {
        fprintf(to, i ? ",\n    " : "\n    ");
        print_step(plan, &sequence->steps[i], to);
    }
    fprintf(to, "]\n");
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}

tr_status tr_plan_print_json(const tr_plan *plan, FILE *to, tr_error *err) {
    fprintf(to, "{\n");
    tr_status status = tr__plan_print_members(plan, to, err);
    fprintf(to, "}\n");
    return status;
}
