// A plan as one JSON object. Written by hand, a line a step: a plan can have 100,000 of
// them, and every text in it is a number or a name that is escaped here.
#include "plan/plan.h"

#include <inttypes.h>

static void print_text(const char *text, FILE *to) {
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(to, "\\%c", *c);
        } else if (*c < 0x20) {
            fprintf(to, "\\u%04x", *c);
        } else {
            fputc(*c, to);
        }
    }
    fputc('"', to);
}

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

static void print_step(const tr_plan *plan, tr_sequence_kind kind,
                       const tr_plan_step *step, FILE *to) {
    static const char *const slots[TR_SLOTS] = {"input",       "output", "input_grad",
                                                "output_grad", "saved",  "wave",
                                                "wave_grad",   "temp"};
    static const char *const streams[] = {"compute", "data", "communication"};
    static const char *const parts[] = {"parameters", "gradients", "record"};
    fprintf(to, "{\"kind\": \"%s\", \"stream\": \"%s\"", tr__plan_step_name(step->kind),
            streams[step->stream]);
    bool flat = step->kind == TR_STEP_update || step->kind == TR_STEP_fold ||
                step->kind == TR_STEP_reduce ||
                (step->kind == TR_STEP_gather && step->part != TR_PART_RECORD) ||
                (step->kind == TR_STEP_clear && step->part == TR_PART_GRAD);
    bool unit = flat || step->kind == TR_STEP_combine ||
                tr__step_program(plan, step, kind) != NULL;
    if (unit) {
        fprintf(to, ", \"unit\": ");
        print_text(flat ? plan->flats[step->unit].name
                        : plan->request.model->units[step->unit].name,
                   to);
    }
    if (step->kind == TR_STEP_gather) {
        fprintf(to, ", \"part\": \"%s\"", parts[step->part]);
    }
    if (step->wait > 0) {
        fprintf(to, ", \"wait\": %d", (int)step->wait);
    }
    if (unit && !flat) {
        fprintf(to, ", \"segment\": %d", (int)step->segment);
    }
    if (step->kind == TR_STEP_load || step->kind == TR_STEP_unload ||
        step->kind == TR_STEP_fold || tr__step_program(plan, step, kind)) {
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

tr_status tr_plan_print_json(const tr_plan *plan, FILE *to, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_sequence_kind kind = r->inference ? TR_SEQUENCE_ANSWER : TR_SEQUENCE_TRAIN;
    const tr_sequence *sequence = &plan->sequences[kind];
    fprintf(to,
            "{\n  \"ranks\": %" PRId64 ",\n  \"train_batch_size\": %" PRId64
            ",\n  \"micro_batch\": %" PRId64 ",\n  \"accumulation_steps\": %" PRId64
            ",\n  \"wave\": %" PRId64 ",\n  \"stage\": %d,\n  \"parameters\": %" PRId64
            ",\n  \"vocabulary_slices\": %d,\n",
            r->ranks, r->train_batch_size, r->micro_batch, r->accumulation_steps,
            r->wave, r->stage, tr_plan_parameters(plan), tr__plan_slices(plan));
    print_ledger(plan, to);
    fprintf(to,
            "  \"traffic_bytes\": {\"gather\": %" PRId64 ", \"reduce\": %" PRId64
            ", \"device_host\": 0, \"nvme\": 0},\n",
            plan->traffic.gather, plan->traffic.reduce);
    // Beyond 2^53 with an exponent: readers of JSON take long integers for int64.
    fprintf(to, plan->flops < 0x1p53 ? "  \"flops\": %.0f,\n" : "  \"flops\": %.16e,\n",
            plan->flops);
    fprintf(to, "  \"steps\": [");
    for (size_t i = 0; i < sequence->count; i++) {
        fprintf(to, i ? ",\n    " : "\n    ");
        print_step(plan, kind, &sequence->steps[i], to);
    }
    fprintf(to, "]\n}\n");
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}
