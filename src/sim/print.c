// A simulation for people, as JSON, and as a trace.
#include "plan/print/print.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "sim/pipeline.h"

#include <inttypes.h>

enum { SIZE_TEXT = 32 };

// ---- for people

static void print_request(const tr_plan_request *r, FILE *to) {
    fprintf(to, "model %s: %d unit%s; ", r->model->type, r->model->unit_count,
            tr__plural(r->model->unit_count));
    tr__plan_print_batch(r, to);
    fprintf(to, "; wave %" PRId64 "; stage %d\n\n", r->wave, r->stage);
}

static void print_part(const char *name, double seconds, double whole, FILE *to) {
    fprintf(to, "    %-26s %12.6f s  %5.1f %%\n", name, seconds, 100 * seconds / whole);
}

static void print_times(const tr_simulation *r, bool stages, FILE *to) {
    fprintf(to, stages ? "one step, as ranks spend it in the mean of all stages\n"
                       : "one step, as each rank spends it\n");
    print_part("computing", r->compute_seconds, r->seconds, to);
    print_part("  products of matrices", r->product_seconds, r->seconds, to);
    print_part("  attention", r->attention_seconds, r->seconds, to);
    print_part("  other kernels", r->other_seconds, r->seconds, to);
    print_part("  the update", r->update_seconds, r->seconds, to);
    print_part("slowed by what moves", r->slowed_seconds, r->seconds, to);
    print_part("waiting for messages", r->exposed_seconds, r->seconds, to);
    if (stages) {
        print_part("waiting for other stages", r->bubble_seconds, r->seconds, to);
    }
    if (r->slower_seconds > 0) {
        print_part("waiting for slower ranks", r->slower_seconds, r->seconds, to);
    }
    if (r->copied_bytes > 0) {
        print_part("waiting for copies", r->exposed_copy_seconds, r->seconds, to);
    }
    if (r->stored_bytes > 0) {
        print_part("waiting for NVMe", r->exposed_nvme_seconds, r->seconds, to);
    }
    if (r->host_seconds > 0) {
        print_part("waiting for the host", r->exposed_host_seconds, r->seconds, to);
    }
    print_part("in all", r->seconds, r->seconds, to);
}

// Of a pipeline, how each stage fares.
static void print_stages(const tr_simulated *s, FILE *to) {
    if (s->stage_count == 1) {
        return;
    }
    fprintf(to, "\nstages     computing       update     messages       slower       "
                "bubble   idle\n");
    for (size_t i = 0; i < s->stage_count; i++) {
        const tr_stage_figures *f = &s->stages[i];
        fprintf(to, "    %-4zu %10.6f s %10.6f s %10.6f s %10.6f s %10.6f s %5.1f %%\n",
                i, f->computing - f->update, f->update, f->messages, f->slower,
                f->bubble, 100 * f->idle / f->step);
    }
}

static void print_kinds(const tr_simulated *s, FILE *to) {
    fprintf(to, "\nits steps by kind%s (copies and exchanges run beside the others)\n",
            s->stage_count > 1 ? " on this rank" : "");
    for (int k = 0; k < TR_VERBS; k++) {
        if (s->verb_seconds[k] > 0) {
            fprintf(to, "    %-16s %8" PRId64 " step%-1s %12.6f s\n",
                    tr__verb_name((tr_verb)k), s->verb_steps[k],
                    tr__plural(s->verb_steps[k]), s->verb_seconds[k]);
        }
    }
}

static void print_rates(const tr_simulation *r, const tr_plan_request *request,
                        FILE *to) {
    fprintf(to, "\n    %.6g samples/s", r->samples_per_second);
    if (tr_model_targets(request->model) > 1) {
        fprintf(to, ", %.6g tokens/s; %.6g a rank", r->tokens_per_second,
                r->tokens_per_second_per_rank);
    }
    fprintf(to, "\n    %.1f %% of the machine's operations a second",
            100 * r->utilisation);
    if (r->model_flops < r->flops) {
        fprintf(to, " (%.1f %% without recomputation)", 100 * r->model_utilisation);
    }
    fprintf(to, "\n");
}

static void print_evaluation(const tr_simulation *r, FILE *to) {
    if (r->evaluation_samples > 0) {
        fprintf(to,
                "    an evaluation of %" PRId64 " sample%s takes %.6f s: %.6g "
                "samples/s, as long as %.3g steps\n",
                r->evaluation_samples, tr__plural(r->evaluation_samples),
                r->evaluation_seconds,
                (double)r->evaluation_samples / r->evaluation_seconds,
                r->evaluation_seconds / r->seconds);
    }
}

// Model FLOPs utilisation, as papers have it.
static void print_literature(const tr_simulation *r, FILE *to) {
    if (r->literature.full == 0) {
        return;
    }
    fprintf(
        to,
        "    %.4g TFLOP/s a rank; MFU %.1f %% with attention in full, %.1f %% causal",
        r->tflops_per_rank, 100 * r->mfu, 100 * r->mfu_causal);
    if (r->literature.full_again > 0) {
        fprintf(to, "\n    HFU, with recomputation: %.1f %%, %.1f %% causal",
                100 * r->hfu, 100 * r->hfu_causal);
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
    fprintf(to, "    a rank sends %s in gathers, %s in reductions", gather, reduce);
    if (r->between_bytes > 0) {
        tr__print_size(gather, sizeof gather, r->between_bytes);
        fprintf(to, ", %s of it to other nodes", gather);
    }
    fprintf(to, "\n");
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

static tr_status print_text(const void *simulated, FILE *to, tr_error *err) {
    const tr_simulated *s = simulated;
    const tr_plan_request *request = &s->plan->request;
    fprintf(to, "machine %s\n", s->machine->name);
    print_request(request, to);
    print_times(&s->result, s->stage_count > 1, to);
    print_stages(s, to);
    if (s->plan->hands_out) {
        fprintf(to, "the loss is computed outside of the model: its time is not known, "
                    "and not in this\n");
    }
    print_kinds(s, to);
    print_rates(&s->result, request, to);
    print_literature(&s->result, to);
    print_traffic(&s->result, to);
    print_copies(&s->result, to);
    print_memory(&s->result, to);
    print_evaluation(&s->result, to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the simulation") : TR_OK;
}

// ---- JSON

static void put_integer(tr_json_writer *to, const char *key, int64_t value) {
    tr__json_line(to, 2);
    tr__json_put_integer(to, key, value);
}

static void write_request(const tr_plan_request *request, tr_json_writer *to) {
    put_integer(to, "ranks", tr_mesh_ranks(&request->mesh));
    put_integer(to, "train_batch_size", request->train_batch_size);
    put_integer(to, "micro_batch", request->micro_batch);
    put_integer(to, "accumulation_steps", request->accumulation_steps);
    put_integer(to, "wave", request->wave);
    put_integer(to, "stage", request->stage);
}

static void write_times(const tr_simulation *r, tr_json_writer *to) {
    const struct {
        const char *key;
        double value;
    } all[] = {
        {"seconds", r->seconds},
        {"compute_seconds", r->compute_seconds},
        {"slowed_seconds", r->slowed_seconds},
        {"exposed_seconds", r->exposed_seconds},
        {"exposed_copy_seconds", r->exposed_copy_seconds},
        {"copy_seconds", r->copy_seconds},
        {"exposed_nvme_seconds", r->exposed_nvme_seconds},
        {"nvme_seconds", r->nvme_seconds},
        {"communication_seconds", r->communication_seconds},
        {"exposed_host_seconds", r->exposed_host_seconds},
        {"host_seconds", r->host_seconds},
        {"samples_per_second", r->samples_per_second},
        {"tokens_per_second", r->tokens_per_second},
        {"flops", r->flops},
        {"model_flops", r->model_flops},
        {"utilisation", r->utilisation},
        {"model_utilisation", r->model_utilisation},
        {"product_seconds", r->product_seconds},
        {"attention_seconds", r->attention_seconds},
        {"other_seconds", r->other_seconds},
        {"update_seconds", r->update_seconds},
        {"slower_seconds", r->slower_seconds},
        {"bubble_seconds", r->bubble_seconds},
        {"tokens_per_second_per_rank", r->tokens_per_second_per_rank},
        {"tflops_per_rank", r->tflops_per_rank},
        {"mfu", r->mfu},
        {"mfu_causal", r->mfu_causal},
        {"hfu", r->hfu},
        {"hfu_causal", r->hfu_causal},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tr__json_line(to, 2);
        tr__json_put_real(to, all[i].key, all[i].value);
    }
}

static void write_traffic(const tr_simulation *r, tr_json_writer *to) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "traffic_bytes", '{');
    tr__json_put_integer(to, "gather", r->gather_bytes);
    tr__json_put_integer(to, "reduce", r->reduce_bytes);
    tr__json_put_integer(to, "between_nodes", r->between_bytes);
    tr__json_put_integer(to, "device_host", r->copied_bytes);
    tr__json_put_integer(to, "nvme", r->stored_bytes);
    tr__json_close(to, '}');
}

static void write_memory(const tr_simulation *r, tr_json_writer *to) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "memory", '{');
    for (int s = 0; s < TR_SPACES; s++) {
        tr__json_put_open(to, tr_space_name((tr_space)s), '{');
        tr__json_put_integer(to, "planned", r->planned_bytes[s]);
        tr__json_key(to, "machine");
        if (r->machine_bytes[s] > 0) {
            tr__json_add_integer(to, r->machine_bytes[s]);
        } else {
            tr__json_add_null(to);
        }
        tr__json_close(to, '}');
    }
    tr__json_close(to, '}');
}

static void write_evaluation(const tr_simulation *r, tr_json_writer *to) {
    if (r->evaluation_samples > 0) {
        tr__json_line(to, 2);
        tr__json_put_open(to, "evaluation", '{');
        tr__json_put_integer(to, "samples", r->evaluation_samples);
        tr__json_put_real(to, "seconds", r->evaluation_seconds);
        tr__json_put_real(to, "samples_per_second",
                          (double)r->evaluation_samples / r->evaluation_seconds);
        tr__json_close(to, '}');
    }
}

static void write_kinds(const tr_simulated *s, tr_json_writer *to) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "kinds", '{');
    for (int k = 0; k < TR_VERBS; k++) {
        if (s->verb_steps[k] > 0) {
            tr__json_line(to, 4);
            tr__json_put_open(to, tr__verb_name((tr_verb)k), '{');
            tr__json_put_integer(to, "steps", s->verb_steps[k]);
            tr__json_put_real(to, "seconds", s->verb_seconds[k]);
            tr__json_close(to, '}');
        }
    }
    tr__json_close(to, '}');
}

static tr_status print_json(const void *simulated, FILE *to, tr_error *err) {
    const tr_simulated *s = simulated;
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    tr__json_line(&w, 2);
    tr__json_put_text(&w, "machine", s->machine->name);
    write_request(&s->plan->request, &w);
    write_times(&s->result, &w);
    write_traffic(&s->result, &w);
    write_memory(&s->result, &w);
    write_evaluation(&s->result, &w);
    if (s->stage_count > 1) {
        tr__stages_write(s->plan, s->stages, &w);
    }
    write_kinds(s, &w);
    tr__json_line(&w, 0);
    tr__json_close(&w, '}');
    fputc('\n', to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the simulation") : TR_OK;
}

// ---- trace

// All stages are walked anew: a simulation keeps the spans of its own rank alone.
static tr_status trace_stages(const tr_simulated *s, FILE *to, tr_error *err) {
    const tr_mesh *mesh = &s->plan->request.mesh;
    tr_pipeline pipeline;
    tr_rank_spans *spans = tr__calloc(s->stage_count, sizeof *spans);
    if (!spans) {
        return tr_fail(err, TR_MEMORY, "no memory for a trace");
    }
    tr_status status =
        tr__pipeline_walk(s->plan, s->machine, true, NULL, &pipeline, err);
    for (size_t i = 0; i < s->stage_count && status == TR_OK; i++) {
        const tr_sim_walk *w = &pipeline.walks[i];
        spans[i] = (tr_rank_spans){tr__mesh_rank_of(mesh, TR_ON_PIPELINE, (int64_t)i),
                                   w->spans, w->span_count};
    }
    if (status == TR_OK) {
        status = tr__trace_write(s->plan, "simulated", spans, s->stage_count, to, err);
    }
    tr__pipeline_clear(&pipeline);
    tr__free(spans);
    return status;
}

static tr_status print_trace(const void *simulated, FILE *to, tr_error *err) {
    const tr_simulated *s = simulated;
    tr_rank_spans spans = {tr_mesh_rank(&s->plan->request.mesh), s->spans,
                           s->span_count};
    return s->stage_count > 1
               ? trace_stages(s, to, err)
               : tr__trace_write(s->plan, "simulated", &spans, 1, to, err);
}

// ----

tr_status tr_simulated_print(const tr_simulated *simulated, const tr_sink *to,
                             tr_error *err) {
    return tr__sink_print(to, "tr_simulated_print", print_text, simulated, err);
}

tr_status tr_simulated_print_json(const tr_simulated *simulated, const tr_sink *to,
                                  tr_error *err) {
    return tr__sink_print(to, "tr_simulated_print_json", print_json, simulated, err);
}

tr_status tr_simulated_trace(const tr_simulated *simulated, const tr_sink *to,
                             tr_error *err) {
    return tr__sink_print(to, "tr_simulated_trace", print_trace, simulated, err);
}
