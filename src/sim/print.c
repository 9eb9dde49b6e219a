// A simulation for people, as JSON, and as a trace.
#include "base/text.h"
#include "sim/simulate.h"

#include <inttypes.h>

enum { SIZE_TEXT = 32 };

// ---- for people
// ----------------------------------------------------------------------

static void print_request(const tr_plan_request *r, FILE *to) {
    fprintf(to,
            "model %s: %d units; batch %" PRId64 " = micro-batch %" PRId64 " x %" PRId64
            " accumulation steps x %" PRId64 " ranks; wave %" PRId64 "; stage %d\n\n",
            r->model->type, r->model->unit_count, r->train_batch_size, r->micro_batch,
            r->accumulation_steps, r->ranks, r->wave, r->stage);
}

static void print_part(const char *name, double seconds, double whole, FILE *to) {
    fprintf(to, "    %-26s %12.6f s  %5.1f %%\n", name, seconds, 100 * seconds / whole);
}

static void print_times(const tr_simulation *r, FILE *to) {
    fprintf(to, "one step, as each rank spends it\n");
    print_part("computing", r->compute_seconds, r->seconds, to);
    print_part("slowed by what moves", r->slowed_seconds, r->seconds, to);
    print_part("waiting for messages", r->exposed_seconds, r->seconds, to);
    if (r->copied_bytes > 0) {
        print_part("waiting for copies", r->exposed_copy_seconds, r->seconds, to);
    }
    if (r->stored_bytes > 0) {
        print_part("waiting for NVMe", r->exposed_nvme_seconds, r->seconds, to);
    }
    print_part("in all", r->seconds, r->seconds, to);
}

static void print_kinds(const tr_simulated *s, FILE *to) {
    fprintf(to, "\nits steps by kind (what moves does so beside the others)\n");
    for (int k = 0; k < TR_STEP_KINDS; k++) {
        if (s->kind_seconds[k] > 0) {
            fprintf(to, "    %-10s %8" PRId64 " steps %12.6f s\n",
                    tr__plan_step_name((tr_plan_step_kind)k), s->kind_steps[k],
                    s->kind_seconds[k]);
        }
    }
}

static void print_rates(const tr_simulation *r, const tr_plan_request *request,
                        FILE *to) {
    fprintf(to, "\n    %.6g samples/s", r->samples_per_second);
    if (tr_model_targets(request->model) > 1) {
        fprintf(to, ", %.6g tokens/s", r->tokens_per_second);
    }
    fprintf(to, "\n    %.1f %% of the machine's operations a second",
            100 * r->utilisation);
    if (r->model_flops < r->flops) {
        fprintf(to, " (%.1f %% without what is computed again)",
                100 * r->model_utilisation);
    }
    fprintf(to, "\n");
}

static void print_traffic(const tr_simulation *r, FILE *to) {
    char gather[SIZE_TEXT], reduce[SIZE_TEXT];
    if (r->gather_bytes + r->reduce_bytes == 0) {
        return;
    }
    tr__print_size(gather, sizeof gather, r->gather_bytes);
    tr__print_size(reduce, sizeof reduce, r->reduce_bytes);
    fprintf(to, "    a rank sends %s in gathers, %s in reductions\n", gather, reduce);
}

static void print_copies(const tr_simulation *r, FILE *to) {
    char copied[SIZE_TEXT];
    if (r->copied_bytes > 0) {
        tr__print_size(copied, sizeof copied, r->copied_bytes);
        fprintf(to, "    %s between device and host\n", copied);
    }
    if (r->stored_bytes > 0) {
        tr__print_size(copied, sizeof copied, r->stored_bytes);
        fprintf(to, "    %s to and from NVMe\n", copied);
    }
}

static void print_memory(const tr_simulation *r, FILE *to) {
    for (int s = 0; s < TR_SPACES; s++) {
        char needs[SIZE_TEXT], has[SIZE_TEXT];
        if (r->planned_bytes[s] == 0) {
            continue;
        }
        tr__print_size(needs, sizeof needs, r->planned_bytes[s]);
        tr__print_size(has, sizeof has, r->machine_bytes[s]);
        bool said = r->machine_bytes[s] > 0;
        bool fits = r->planned_bytes[s] <= r->machine_bytes[s];
        fprintf(to, "    %-6s memory of a rank: %s", tr_space_name((tr_space)s), needs);
        fprintf(to, said ? " of %s%s\n" : "\n", has, fits ? "" : ": DOES NOT FIT");
    }
}

tr_status tr_simulated_print(const tr_simulated *s, FILE *to, tr_error *err) {
    const tr_plan_request *request = &s->plan->request;
    fprintf(to, "machine %s\n", s->machine->name);
    print_request(request, to);
    print_times(&s->result, to);
    print_kinds(s, to);
    print_rates(&s->result, request, to);
    print_traffic(&s->result, to);
    print_copies(&s->result, to);
    print_memory(&s->result, to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the simulation") : TR_OK;
}

// ---- JSON
// ----------------------------------------------------------------------------

static void print_number(const char *name, double value, FILE *to) {
    fprintf(to, "  \"%s\": %.9g,\n", name, value);
}

static void print_json_memory(const tr_simulation *r, FILE *to) {
    fprintf(to, "  \"memory\": {");
    for (int s = 0; s < TR_SPACES; s++) {
        fprintf(to, "%s\"%s\": {\"planned\": %" PRId64 ", \"machine\": ", s ? ", " : "",
                tr_space_name((tr_space)s), r->planned_bytes[s]);
        if (r->machine_bytes[s] > 0) {
            fprintf(to, "%" PRId64 "}", r->machine_bytes[s]);
        } else {
            fprintf(to, "null}");
        }
    }
    fprintf(to, "},\n");
}

static void print_json_kinds(const tr_simulated *s, FILE *to) {
    const char *comma = "";
    fprintf(to, "  \"kinds\": {");
    for (int k = 0; k < TR_STEP_KINDS; k++) {
        if (s->kind_steps[k] > 0) {
            fprintf(to, "%s\n    \"%s\": {\"steps\": %" PRId64 ", \"seconds\": %.9g}",
                    comma, tr__plan_step_name((tr_plan_step_kind)k), s->kind_steps[k],
                    s->kind_seconds[k]);
            comma = ",";
        }
    }
    fprintf(to, "}\n}\n");
}

tr_status tr_simulated_print_json(const tr_simulated *s, FILE *to, tr_error *err) {
    const tr_plan_request *request = &s->plan->request;
    const tr_simulation *r = &s->result;
    fprintf(to, "{\n  \"machine\": \"");
    tr__print_escaped(s->machine->name, to);
    fprintf(to,
            "\",\n  \"ranks\": %" PRId64 ",\n  \"train_batch_size\": %" PRId64
            ",\n  \"micro_batch\": %" PRId64 ",\n  \"accumulation_steps\": %" PRId64
            ",\n  \"wave\": %" PRId64 ",\n  \"stage\": %d,\n",
            request->ranks, request->train_batch_size, request->micro_batch,
            request->accumulation_steps, request->wave, request->stage);
    print_number("seconds", r->seconds, to);
    print_number("compute_seconds", r->compute_seconds, to);
    print_number("slowed_seconds", r->slowed_seconds, to);
    print_number("exposed_seconds", r->exposed_seconds, to);
    print_number("exposed_copy_seconds", r->exposed_copy_seconds, to);
    print_number("copy_seconds", r->copy_seconds, to);
    print_number("exposed_nvme_seconds", r->exposed_nvme_seconds, to);
    print_number("nvme_seconds", r->nvme_seconds, to);
    print_number("communication_seconds", r->communication_seconds, to);
    print_number("samples_per_second", r->samples_per_second, to);
    print_number("tokens_per_second", r->tokens_per_second, to);
    print_number("flops", r->flops, to);
    print_number("model_flops", r->model_flops, to);
    print_number("utilisation", r->utilisation, to);
    print_number("model_utilisation", r->model_utilisation, to);
    fprintf(to,
            "  \"traffic_bytes\": {\"gather\": %" PRId64 ", \"reduce\": %" PRId64
            ", \"device_host\": %" PRId64 ", \"nvme\": %" PRId64 "},\n",
            r->gather_bytes, r->reduce_bytes, r->copied_bytes, r->stored_bytes);
    print_json_memory(r, to);
    print_json_kinds(s, to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the simulation") : TR_OK;
}

// ---- trace
// ---------------------------------------------------------------------------

tr_status tr_simulated_trace(const tr_simulated *s, FILE *to, tr_error *err) {
    tr_rank_spans spans = {s->plan->request.rank, s->spans, s->span_count};
    return tr__trace_write(s->plan, "simulated", &spans, 1, to, err);
}
