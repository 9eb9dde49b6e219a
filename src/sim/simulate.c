// What a walk of the plan's stages comes to.
#include "sim/simulate.h"

#include "base/arguments.h"
#include "base/checked.h"
#include "base/memory.h"
#include "sim/pipeline.h"

#include <string.h>

// By the literature's formulas; of a rank, in the mean of all stages.
static void conclude_literature(const tr_plan *plan, const tr_pipeline *pipeline,
                                double possible, tr_simulation *r) {
    double ranks = (double)tr_mesh_ranks(&plan->request.mesh);
    double stages = (double)pipeline->count;
    const tr_model_flops *all = &pipeline->literature;
    r->literature =
        (tr_model_flops){all->full / stages, all->causal / stages,
                         all->full_again / stages, all->causal_again / stages};
    const tr_model_flops *f = &r->literature;
    r->tokens_per_second_per_rank = r->tokens_per_second / ranks;
    r->tflops_per_rank = f->full / r->seconds / 1e12;
    r->mfu = f->full / possible;
    r->mfu_causal = f->causal / possible;
    r->hfu = (f->full + f->full_again) / possible;
    r->hfu_causal = (f->causal + f->causal_again) / possible;
}

// What one stage has spent of a step of so many seconds.
static void conclude_walk(const tr_sim_walk *w, double seconds, tr_simulation *r) {
    const tr_walk_stream *s = w->streams;
    *r = w->result;
    r->copy_seconds = s[TR_STREAM_COPY].busy + s[TR_STREAM_COPY_OUT].busy;
    r->nvme_seconds = s[TR_STREAM_NVME].busy;
    r->host_seconds = s[TR_STREAM_HOST].busy;
    for (int i = 0; i < TR_STREAMS; i++) {
        bool exchanges = tr__stream_exchanges((tr_stream)i);
        r->communication_seconds += exchanges ? s[i].busy : 0;
        r->exposed_seconds += exchanges ? s[i].exposed : 0;
    }
    r->exposed_copy_seconds = s[TR_STREAM_COPY].exposed + s[TR_STREAM_COPY_OUT].exposed;
    r->exposed_nvme_seconds = s[TR_STREAM_NVME].exposed;
    r->exposed_host_seconds = s[TR_STREAM_HOST].exposed;
    r->other_seconds = r->compute_seconds - r->product_seconds - r->attention_seconds -
                       r->update_seconds;
    r->bubble_seconds += seconds - w->now; // until the last stage has ended
}

static void note_stage(const tr_simulation *r, double seconds, tr_stage_figures *to) {
    to->step = seconds;
    to->computing = r->compute_seconds;
    to->bubble = r->bubble_seconds;
    to->messages = r->exposed_seconds;
    to->slower = r->slower_seconds;
    to->update = r->update_seconds;
    to->idle = seconds - r->compute_seconds - r->slowed_seconds;
}

static void add_times(tr_simulation *sum, const tr_simulation *r, double part) {
    sum->compute_seconds += part * r->compute_seconds;
    sum->slowed_seconds += part * r->slowed_seconds;
    sum->exposed_seconds += part * r->exposed_seconds;
    sum->exposed_copy_seconds += part * r->exposed_copy_seconds;
    sum->exposed_nvme_seconds += part * r->exposed_nvme_seconds;
    sum->exposed_host_seconds += part * r->exposed_host_seconds;
    sum->communication_seconds += part * r->communication_seconds;
    sum->copy_seconds += part * r->copy_seconds;
    sum->nvme_seconds += part * r->nvme_seconds;
    sum->host_seconds += part * r->host_seconds;
    sum->product_seconds += part * r->product_seconds;
    sum->attention_seconds += part * r->attention_seconds;
    sum->other_seconds += part * r->other_seconds;
    sum->update_seconds += part * r->update_seconds;
    sum->slower_seconds += part * r->slower_seconds;
    sum->bubble_seconds += part * r->bubble_seconds;
    sum->flops += part * r->flops;
    sum->model_flops += part * r->model_flops;
}

static void add_bytes(tr_simulation *sum, const tr_simulation *r) {
    sum->gather_bytes += r->gather_bytes;
    sum->reduce_bytes += r->reduce_bytes;
    sum->between_bytes += r->between_bytes;
    sum->copied_bytes += r->copied_bytes;
    sum->stored_bytes += r->stored_bytes;
}

static void conclude_stages(tr_simulated *to, tr_pipeline *pipeline) {
    tr_simulation *r = &to->result;
    int64_t count = tr__max_i64(1, (int64_t)pipeline->count); // there is one
    double part = 1 / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double end = pipeline->walks[i].now;
        r->seconds = end > r->seconds ? end : r->seconds;
    }
    for (int64_t i = 0; i < count; i++) {
        tr_simulation own;
        conclude_walk(&pipeline->walks[i], r->seconds, &own);
        note_stage(&own, r->seconds, &pipeline->figures[i]);
        add_times(r, &own, part);
        add_bytes(r, &own);
        for (int s = 0; s < TR_SPACES; s++) {
            r->planned_bytes[s] =
                tr__max_i64(r->planned_bytes[s], pipeline->figures[i].bytes[s]);
        }
    }
    r->gather_bytes /= count;
    r->reduce_bytes /= count;
    r->between_bytes /= count;
    r->copied_bytes /= count;
    r->stored_bytes /= count;
}

static void conclude(tr_simulated *to, tr_pipeline *pipeline) {
    const tr_plan_request *request = &to->plan->request;
    const tr_machine *machine = to->machine;
    const tr_share *share = &pipeline->tapes[pipeline->own].share;
    tr_simulation *r = &to->result;
    conclude_stages(to, pipeline);
    double possible =
        tr__machine_flops(machine, request->compute) * share->part * r->seconds;
    r->samples_per_second = (double)request->train_batch_size / r->seconds;
    r->tokens_per_second =
        r->samples_per_second * (double)tr_model_targets(request->model);
    r->utilisation = r->flops / possible;
    r->model_utilisation = r->model_flops / possible;
    conclude_literature(to->plan, pipeline, possible, r);
    for (int s = 0; s < TR_SPACES; s++) {
        bool own = s == TR_SPACE_DEVICE && !machine->shared;
        r->machine_bytes[s] = machine->capacity[s] / (own ? 1 : share->sharers);
    }
}

// What the walk of the plan's own rank has noted.
static void take_own(tr_simulated *to, tr_pipeline *pipeline) {
    tr_sim_walk *own = &pipeline->walks[pipeline->own];
    memcpy(to->verb_seconds, own->verb_seconds, sizeof to->verb_seconds);
    memcpy(to->verb_steps, own->verb_steps, sizeof to->verb_steps);
    to->spans = own->spans;
    to->span_count = own->span_count;
    own->spans = NULL;
    to->stages = pipeline->figures;
    to->stage_count = pipeline->count;
    pipeline->figures = NULL;
}

static tr_status simulate(tr_simulated *to, const tr_stage_watch *watch, bool *stopped,
                          tr_error *err) {
    tr_pipeline pipeline;
    tr_status status =
        tr__pipeline_walk(to->plan, to->machine, false, watch, &pipeline, err);
    *stopped = pipeline.stopped;
    if (status == TR_OK && !pipeline.stopped) {
        conclude(to, &pipeline);
        take_own(to, &pipeline);
    }
    tr__pipeline_clear(&pipeline);
    return status;
}

tr_status tr__simulate_watched(const tr_plan *plan, const tr_machine *machine,
                               const tr_stage_watch *watch, tr_simulated **out,
                               tr_error *err) {
    tr_simulated *simulated = tr__calloc(1, sizeof *simulated);
    if (!simulated) {
        return tr_fail(err, TR_MEMORY, "no memory for a simulation");
    }
    bool stopped = false;
    simulated->plan = plan;
    simulated->machine = machine;
    simulated->result.size = sizeof simulated->result;
    tr_status status = simulate(simulated, watch, &stopped, err);
    if (status != TR_OK || stopped) {
        tr_simulated_destroy(simulated);
        simulated = NULL;
    }
    *out = status == TR_OK ? simulated : *out;
    return status;
}

tr_status tr_simulate(const tr_plan *plan, const tr_machine *machine,
                      tr_simulated **out, tr_error *err) {
    static const char own_name[] = "tr_simulate";
    tr_status status = tr__need(plan, own_name, "plan", err);
    status = status == TR_OK ? tr__need(machine, own_name, "machine", err) : status;
    status = status == TR_OK ? tr__need(out, own_name, "out", err) : status;
    if (status != TR_OK) {
        return status;
    }
    if (plan->request.inference) {
        return tr_fail(err, TR_USAGE, "only a training step can be simulated");
    }
    return tr__simulate_watched(plan, machine, NULL, out, err);
}

void tr_simulated_destroy(tr_simulated *simulated) {
    if (simulated) {
        tr__free(simulated->stages);
        tr__free(simulated->spans);
        tr__free(simulated);
    }
}

const tr_simulation *tr_simulated_result(const tr_simulated *simulated) {
    return simulated ? &simulated->result : NULL;
}

void tr_plan_note_times(tr_plan *plan, const tr_simulated *simulated) {
    bool staged =
        plan && plan->stages && simulated &&
        plan->request.mesh.size[TR_AXIS_PIPELINE] == (int64_t)simulated->stage_count;
    for (size_t i = 0; staged && i < simulated->stage_count; i++) {
        plan->stages[i] = simulated->stages[i];
    }
}
