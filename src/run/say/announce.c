// What a run says when it begins: its model, batch, precision and every default that
// changes the training.
#include "backend/backend.h"
#include "base/text.h"
#include "models/models.h"
#include "ops/optimizers/optimizer_settings.h"
#include "plan/flow/request.h"
#include "run/run.h"

#include <jansson.h>

#include <stdio.h>
#include <string.h>

// "dropout: residual 0.1, embedding 0.1, attention 0.1"
static void say_dropout(const tr_run *run) {
    const tr_dropout_key *dropout = tr__model_dropout(run->model);
    json_t *keys = json_loads(run->model->config_json, 0, NULL);
    char text[256] = "";
    for (; dropout && dropout->key; dropout++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s %g", length ? ", " : "",
                 dropout->name, json_number_value(json_object_get(keys, dropout->key)));
    }
    if (text[0]) {
        tr__note(&run->log, "dropout: %s", text);
    }
    json_decref(keys);
}

// "": ranks differ on the data axis alone.
static void name_mesh(const tr_mesh *mesh, char *text, size_t size) {
    text[0] = '\0';
    if (mesh->size[TR_AXIS_DATA] < tr_mesh_ranks(mesh)) {
        snprintf(text, size, " (%lld data x %lld tensor x %lld stage%s)",
                 (long long)mesh->size[TR_AXIS_DATA],
                 (long long)mesh->size[TR_AXIS_TENSOR],
                 (long long)mesh->size[TR_AXIS_PIPELINE],
                 tr__plural(mesh->size[TR_AXIS_PIPELINE]));
    }
}

static void say_ranks(const tr_run *run, const tr_plan_request *r) {
    int64_t ranks = tr_mesh_ranks(&r->mesh);
    if (ranks == 1) {
        return;
    }
    int room = tr_comm_threads(run->comm);
    const tr_backend *backend = tr__backend(r->backend);
    const char *by = r->peers                        ? backend->peers->name
                     : tr__backend_is_apart(backend) ? "pinned memory of the host"
                                                     : NULL;
    char mesh[96];
    name_mesh(&r->mesh, mesh, sizeof mesh);
    tr__note(&run->log, "%lld ranks%s of %d thread%s, ZeRO stage %d, wave %lld%s%s",
             (long long)ranks, mesh, r->threads, tr__plural(r->threads), r->stage,
             (long long)r->wave, by ? "; they exchange by " : "", by ? by : "");
    if (r->hierarchical && tr__mesh_has_nodes(&r->mesh, r->node_ranks)) {
        tr__note(&run->log,
                 "they exchange on nodes of %lld ranks, then once between %lld nodes",
                 (long long)r->node_ranks, (long long)(ranks / r->node_ranks));
    }
    if (r->threads > room) {
        tr__warn(&run->log,
                 "execution.threads is %d, but each rank has cores for %d: ranks will "
                 "wait for each other",
                 r->threads, room);
    }
}

// It was asked for, and there is nothing to measure.
static void say_no_part(const tr_run *run, const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    if (r->train_batch_size <= r->micro_batch) {
        tr__warn(
            &run->log,
            "noise_scale.measure measures nothing: it compares the gradient of one "
            "micro-batch with that of the batch, and here the batch is one "
            "micro-batch. Set a smaller train_micro_batch_size_per_gpu");
    } else {
        tr__warn(&run->log, "noise_scale.measure measures nothing: the plan makes no "
                            "tensor's gradient of a part of the batch alone");
    }
}

// That it is not measured is known with the plan alone.
static void say_no_noise(const tr_run *run, const tr_plan *plan) {
    bool measured = plan->request.measure != TR_MEASURE_NEVER;
    if (!measured && run->request.measure == TR_MEASURE_ALWAYS) {
        say_no_part(run, plan);
    } else if (!measured && run->request.measure != TR_MEASURE_NEVER &&
               tr__config_is_given(run->config, "noise_scale.smoothing")) {
        tr__warn(&run->log, "noise_scale.smoothing has no effect: measuring the noise "
                            "scale would cost too much here; noise_scale.measure true "
                            "has it measured all the same");
    }
}

// Which tensors the noise scale is without, and why: it is that of the others alone.
static void say_left_out(const tr_run *run, const tr_plan *plan) {
    const tr_flat *first = NULL;
    const char *why = NULL;
    size_t more = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const char *reason = plan->flats[f].no_micro_norm;
        more += first && reason;
        why = first ? why : reason;
        first = first ? first : reason ? &plan->flats[f] : NULL;
    }
    if (first && plan->request.measure != TR_MEASURE_NEVER) {
        char others[32] = "";
        if (more > 0) {
            snprintf(others, sizeof others, " and %zu more", more);
        }
        tr__note(&run->log,
                 "noise scale: measured without the gradient of %s%s (%s), so it is "
                 "that of all other tensors",
                 first->name, others, why);
    }
}

static bool was_auto(const tr_run *run, const char *key) {
    return tr__config_is_given(run->config, key) &&
           tr__config_origin(run->config, key) == TR_ORIGIN_AUTO;
}

static const char *place_name(tr_space space) {
    return space == TR_SPACE_NVME ? "nvme" : "cpu";
}

// "no offload", or what is where.
static void print_offload(const tr_plan_request *r, char *dst, size_t size) {
    bool state = r->optimizer_placement != TR_SPACE_DEVICE;
    bool params = r->param_placement != TR_SPACE_DEVICE;
    snprintf(dst, size, "%s%s%s%s%s", state || params ? "offload: " : "no offload",
             state ? "optimizer to " : "",
             state ? place_name(r->optimizer_placement) : "",
             params ? state ? ", parameters to " : "parameters to " : "",
             params ? place_name(r->param_placement) : "");
}

// Which switches of 16 bits are left open where nobody decides them; "": none.
static void print_open(const tr_run *run, char *dst, size_t size) {
    bool bf16 = was_auto(run, "bf16.enabled"), fp16 = was_auto(run, "fp16.enabled"),
         old = was_auto(run, "bfloat16.enabled");
    bool any_bf16 = bf16 || old, both = any_bf16 && fp16;
    const char *name = bf16 ? "bf16.enabled" : "bfloat16.enabled";
    dst[0] = '\0';
    if (run->request.compute == TR_F32 && (any_bf16 || fp16)) {
        snprintf(dst, size, " (%s%s%s \"auto\": set %s to true for 16 bits)",
                 any_bf16 ? name : "fp16.enabled", both ? " and fp16.enabled" : "",
                 both ? " are" : " is", both ? "one of them" : "it");
    }
}

// Behind the precision: products that are not in it.
static const char *fp8_words(const tr_plan *plan) {
    bool emulated = plan->target.backend == TR_BACKEND_HOST;
    return !plan->request.fp8.enabled ? ""
           : emulated ? " with fp8 products (emulated exactly on the CPU, slower than "
                        "bf16)"
                      : " with fp8 products";
}

// In what is computed, on what, and what is elsewhere.
static void say_how(const tr_run *run, const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    char offload[96], stage[64] = "", open[128], device[32];
    const char *with = plan->target.backend == TR_BACKEND_HOST ? "of" : "beside";
    tr__device_print(plan->target.backend, r->device, device, sizeof device);
    print_offload(r, offload, sizeof offload);
    print_open(run, open, sizeof open);
    if (tr_mesh_ranks(&r->mesh) == 1) { // of several ranks it is in their line
        snprintf(stage, sizeof stage, " %s %d thread%s; ZeRO stage %d%s", with,
                 r->threads, tr__plural(r->threads), r->stage,
                 r->stage > 0 ? " (no effect on one rank)" : "");
    }
    tr__note(&run->log, "precision %s%s%s; device %s (%s)%s; %s",
             r->compute == TR_BF16  ? "bf16"
             : r->compute == TR_F16 ? "fp16"
                                    : "f32",
             fp8_words(plan), open, device, tr__target_name(&plan->target), stage,
             offload);
}

static void say_optimizer(const tr_run *run) {
    const char *type = tr__config_text(run->config, "optimizer.type");
    const tr_optimizer_settings *of = type ? tr__optimizer_settings_find(type) : NULL;
    if (of && of->told && !tr__config_is_given(run->config, of->told)) {
        tr__note(&run->log, "%s: %s (default; DeepSpeed's is another)", of->told,
                 tr__config_text(run->config, of->told));
    }
}

// What the rule makes of the optimizer's numbers.
static void say_scaling(const tr_run *run) {
    const tr_settings *s = &run->settings;
    const tr_hyper *was = &s->groups[s->group_count - 1].hyper;
    tr_hyper is = *was;
    char said[TR_SCALED_TEXT] = "";
    if (s->scaling.rule == TR_SCALING_NONE) {
        return;
    }
    tr__scaling_apply(&s->scaling, s->optimizer, s->batches.first, &is, said);
    tr__note(
        &run->log,
        "batch_scaling %s: batch %lld is k = %g times %lld; rates are multiplied by "
        "%.6g (lr %g becomes %g)",
        tr__scaling_name(s->scaling.rule), (long long)s->batches.first,
        (double)s->batches.first / (double)s->scaling.reference,
        (long long)s->scaling.reference,
        tr__scaling_rate(&s->scaling, s->batches.first), was->lr, is.lr);
    if (s->scaling.rule == TR_SCALING_ADAM) {
        tr__note(&run->log, "batch_scaling adam: betas %g, %g become %g, %g; %s",
                 was->beta1, was->beta2, is.beta1, is.beta2, said);
    }
}

static void say_batches(const tr_run *run) {
    const tr_batches *b = &run->settings.batches;
    for (size_t i = 0; i < b->count; i++) {
        tr__note(&run->log, "batch_schedule: after step %lld the batch is %lld",
                 (long long)b->changes[i].step, (long long)b->changes[i].batch);
    }
    if (b->adaptive) {
        tr__note(
            &run->log,
            "adaptive_batch: every %lld steps the batch follows %g times the noise "
            "scale, from %lld to %lld",
            (long long)b->every, b->share, (long long)b->least, (long long)b->most);
    }
}

static void say_guard(const tr_run *run) {
    const tr_guard_rules *g = &run->settings.guard;
    if (g->action != TR_GUARD_NONE) {
        tr__note(
            &run->log,
            "spike_guard %s: above %g standard deviations of loss or gradient norm, "
            "after %lld steps; more than %lld spikes end the run",
            tr__guard_action_name(g->action), g->threshold, (long long)g->after,
            (long long)g->limit);
    }
    if (g->action == TR_GUARD_ROLLBACK && run->settings.checkpoint_every == 0 &&
        run->settings.checkpoint_minutes == 0) {
        tr__warn(&run->log, "spike_guard rollback needs checkpoints to go back to: set "
                            "checkpoint.every or checkpoint.minutes");
    }
}

enum { WORTH_SAYING = 1 << 20 }; // bytes

// ", host 657.00 MiB"; "" where that is next to nothing.
static void print_part(const char *words, int64_t bytes, char *dst, size_t size) {
    char part[32];
    tr__print_size(part, sizeof part, bytes);
    dst[0] = '\0';
    if (bytes >= WORTH_SAYING) {
        snprintf(dst, size, "%s%s", words, part);
    }
}

// All that the process takes: "1.94 GiB (device 1.20 GiB, host 657 MiB, up to 96 MiB
// beside them)".
static void print_memory(const tr_plan *plan, char *dst, size_t size) {
    const tr_ledger *ledger = tr_plan_ledger(plan);
    char all[32], device[32], beside[32], host[48], file[48];
    tr__print_size(all, sizeof all, tr__run_process_bytes(plan));
    tr__print_size(device, sizeof device, ledger->total[TR_SPACE_DEVICE]);
    tr__print_size(beside, sizeof beside, tr__request_process(&plan->request));
    print_part(", host ", ledger->total[TR_SPACE_HOST], host, sizeof host);
    print_part("; on nvme ", ledger->total[TR_SPACE_NVME], file, sizeof file);
    if (tr__backend(plan->target.backend)->device) {
        snprintf(dst, size, "device %s; process %s (up to %s beside the plan%s)%s",
                 device, all, beside, host, file);
    } else {
        snprintf(dst, size, "%s (device %s%s, up to %s beside the plan)%s", all, device,
                 host, beside, file);
    }
}

// ", about 3m20s (0.105 s each, predicted)", of all optimizer steps.
static void print_time(const tr_settings *s, double seconds, char *dst, size_t size) {
    const tr_batches *batches = &s->batches;
    bool changes = batches->count > 0 || batches->adaptive;
    char all[32] = "less than 1s";
    if (seconds * (double)s->steps >= 1) {
        tr__print_time(all, sizeof all, seconds * (double)s->steps);
    }
    if (seconds > 0) {
        snprintf(dst, size, ", about %s (%.3g s each%s, predicted)", all, seconds,
                 changes ? " of the first batch" : "");
    } else {
        snprintf(dst, size, " (how long: said after the first)");
    }
}

static void say_batch(const tr_run *run, double seconds) {
    const tr_plan_request *r = &run->request;
    int64_t steps = run->settings.steps;
    char ranks[32] = "", time[96];
    print_time(&run->settings, seconds, time, sizeof time);
    if (tr__data_ranks(r) > 1) {
        snprintf(ranks, sizeof ranks, " x %lld ranks", (long long)tr__data_ranks(r));
    }
    tr__note(&run->log,
             "batch %lld = %lld x %lld accumulation step%s%s; %lld optimizer step%s%s",
             (long long)r->train_batch_size, (long long)r->micro_batch,
             (long long)r->accumulation_steps, tr__plural(r->accumulation_steps), ranks,
             (long long)steps, tr__plural(steps), time);
}

void tr__run_announce(const tr_run *run, const tr_plan *plan, double seconds) {
    char memory[192], trained[80] = "";
    print_memory(plan, memory, sizeof memory);
    if (tr_plan_trained(plan) < tr_plan_parameters(plan)) {
        snprintf(trained, sizeof trained, " (%lld trained, %lld frozen)",
                 (long long)tr_plan_trained(plan),
                 (long long)(tr_plan_parameters(plan) - tr_plan_trained(plan)));
    }
    tr__note(&run->log, "model %s, %lld parameters%s%s%s; data: %s", run->model->type,
             (long long)tr_plan_parameters(plan), trained,
             run->weights ? ", from " : "", run->weights ? run->weights : "",
             run->train ? tr_dataset_about(run->train) : "from the caller");
    say_batch(run, seconds);
    tr__note(&run->log, "planned memory %s", memory);
    say_how(run, plan);
    tr__run_say_autos(run);
    tr__run_say_groups(run, plan);
    say_no_noise(run, plan);
    say_left_out(run, plan);
    say_optimizer(run);
    say_scaling(run);
    say_batches(run);
    say_guard(run);
    say_dropout(run);
    say_ranks(run, &plan->request);
    tr__note(&run->log, "out: %s", run->settings.out);
}
