// The beginning of a run: does it fit, what it will do, what it leaves in its folder.
#include "backend/backend.h"
#include "base/checked.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"
#include "models/models.h"
#include "plan/plan.h"
#include "train/engine.h"

#include <jansson.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- does it fit

enum { TRIED_MICROS_MAX = 4096 }; // of a plan that is made only to see what it takes

static int64_t needed(const tr_plan *plan) {
    const tr_ledger *ledger = tr_plan_ledger(plan);
    return ledger->total[TR_SPACE_DEVICE] + ledger->total[TR_SPACE_HOST] +
           TR_PROCESS_BYTES;
}

// The largest halving of the micro-batch that fits; 0: none, or none that is tried.
static int64_t smaller_micro(const tr_plan_request *request, int64_t memory,
                             int64_t *bytes) {
    tr_plan_request tried = *request;
    while (tried.micro_batch > 1) {
        tr_plan *plan = NULL;
        tried.micro_batch /= 2;
        tried.accumulation_steps =
            tr__ceil_div(request->train_batch_size, tried.micro_batch * tried.ranks);
        if (tried.accumulation_steps > TRIED_MICROS_MAX ||
            tr_plan_make(&tried, &plan, NULL) != TR_OK) {
            return 0;
        }
        *bytes = needed(plan);
        tr_plan_destroy(plan);
        if (*bytes <= memory) {
            return tried.micro_batch;
        }
    }
    return 0;
}

// What there is for this rank: those on one machine share its memory.
static int64_t share_of_memory(const tr_run *run) {
    return tr__machine_memory() / (run->comm ? tr__comm_local_ranks(run->comm) : 1);
}

// "", or " for each of the 4 ranks on it".
static void print_sharing(const tr_run *run, char *text, size_t size) {
    int ranks = run->comm ? tr__comm_local_ranks(run->comm) : 1;
    text[0] = '\0';
    if (ranks > 1) {
        snprintf(text, size, " for each of the %d ranks on it", ranks);
    }
}

tr_status tr__run_fits(const tr_run *run, const tr_plan *plan, tr_error *err) {
    int64_t memory = share_of_memory(run), bytes = 0;
    if (memory == 0 || needed(plan) <= memory) {
        return TR_OK;
    }
    char want[32], have[32], less[32], sharing[64];
    int64_t micro = smaller_micro(&run->request, memory, &bytes);
    tr__print_size(want, sizeof want, needed(plan));
    tr__print_size(have, sizeof have, memory);
    tr__print_size(less, sizeof less, bytes);
    print_sharing(run, sharing, sizeof sharing);
    if (micro > 0) {
        return tr_fail(err, TR_BUDGET,
                       "the plan needs %s of memory, this machine has %s%s; with "
                       "train_micro_batch_size_per_gpu %lld in place of %lld it would "
                       "need %s",
                       want, have, sharing, (long long)micro,
                       (long long)run->request.micro_batch, less);
    }
    return tr_fail(err, TR_BUDGET,
                   "the plan needs %s of memory, this machine has %s%s: lower "
                   "train_micro_batch_size_per_gpu, set "
                   "activation_checkpointing.number_checkpoints, or choose a smaller "
                   "model",
                   want, have, sharing);
}

// ---- the out folder

static tr_status write_plan(const tr_run *run, const tr_plan *plan, tr_error *err) {
    char path[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    tr_status status =
        tr__path_join(path, sizeof path, run->settings.out, "plan.txt", err);
    if (status != TR_OK) {
        return status;
    }
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory) {
        return tr_fail(err, TR_MEMORY, "no memory to print the plan");
    }
    status = tr_run_print_plan(run, plan, memory, err);
    if (fclose(memory) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory to print the plan");
    }
    if (status == TR_OK) {
        status = tr__file_replace(path, text, bytes, err);
    }
    free(text);
    return status;
}

static tr_status write_resolved(const tr_run *run, tr_error *err) {
    char path[PATH_MAX];
    char *text = NULL, *lines = NULL;
    tr_status status =
        tr__path_join(path, sizeof path, run->settings.out, "run.json", err);
    if (status == TR_OK) {
        status = tr__config_write_resolved(run->config, &text, err);
    }
    if (status == TR_OK) {
        lines = tr__format("%s\n", text);
        status = lines ? tr__file_replace(path, lines, strlen(lines), err)
                       : tr_fail(err, TR_MEMORY, "no memory to write %s", path);
    }
    tr__free(lines);
    tr__free(text);
    return status;
}

// What the plan has decided belongs to what reproduces the run.
tr_status tr__run_resolve_execution(tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_status status = TR_OK;
    if (!(run->chosen >> TR_DIMENSION_wave & 1)) {
        status = tr__config_resolve_int(run->config, "execution.wave", r->wave,
                                        TR_ORIGIN_AUTO, "chosen by the plan", err);
    }
    if (status == TR_OK) {
        status = tr__config_resolve_int(run->config, "execution.threads", r->threads,
                                        TR_ORIGIN_AUTO,
                                        "the size of the work, and the cores", err);
    }
    return status == TR_OK
               ? tr__config_resolve_bool(
                     run->config, "noise_scale.measure", r->measure != TR_MEASURE_NEVER,
                     TR_ORIGIN_AUTO, "whether it costs a hundredth of the time or less",
                     err)
               : status;
}

tr_status tr__run_write(tr_run *run, const tr_plan *plan, tr_error *err) {
    tr_status status = tr__run_resolve_execution(run, plan, err);
    if (status == TR_OK && tr__comm_leads(run->comm)) {
        status = write_resolved(run, err);
    }
    if (status == TR_OK && tr__comm_leads(run->comm)) {
        status = write_plan(run, plan, err);
    }
    return status;
}

// ---- what it will do

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

static void say_ranks(const tr_run *run, const tr_plan_request *r) {
    if (r->ranks == 1) {
        return;
    }
    int room = tr_comm_threads(run->comm);
    tr__note(&run->log, "%lld ranks of %d thread%s, ZeRO stage %d, wave %lld",
             (long long)r->ranks, r->threads, tr__plural(r->threads), r->stage,
             (long long)r->wave);
    if (r->threads > room) {
        tr__warn(&run->log,
                 "execution.threads is %d, but there are cores for %d on each rank: "
                 "ranks will wait for each other",
                 r->threads, room);
    }
}

// That it is not measured is known with the plan alone.
static void say_no_noise(const tr_run *run, const tr_plan *plan) {
    if (plan->request.measure == TR_MEASURE_NEVER &&
        run->request.measure != TR_MEASURE_NEVER &&
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
        const char *reason = plan->flats[f].not_gauged;
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
    bool state = r->optimizer_home != TR_SPACE_DEVICE;
    bool params = r->param_home != TR_SPACE_DEVICE;
    snprintf(dst, size, "%s%s%s%s%s", state || params ? "offload: " : "no offload",
             state ? "optimizer to " : "", state ? place_name(r->optimizer_home) : "",
             params ? state ? ", parameters to " : "parameters to " : "",
             params ? place_name(r->param_home) : "");
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

// In what is computed, on what, and what is elsewhere.
static void say_how(const tr_run *run, const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    char offload[96], stage[64] = "", open[128];
    print_offload(r, offload, sizeof offload);
    print_open(run, open, sizeof open);
    if (r->ranks == 1) { // of several ranks it is in their line
        snprintf(stage, sizeof stage, " of %d thread%s; ZeRO stage %d%s", r->threads,
                 tr__plural(r->threads), r->stage,
                 r->stage > 0 ? " (no effect on one rank)" : "");
    }
    tr__note(&run->log, "precision %s%s; device %s (%s)%s; %s",
             r->compute == TR_BF16  ? "bf16"
             : r->compute == TR_F16 ? "fp16"
                                    : "f32",
             open, tr__backend(plan->target.backend)->name,
             tr__target_name(&plan->target), stage, offload);
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

// Defaults that change the training are said, so that nobody is surprised by them.
static void say_start(const tr_run *run, const tr_plan *plan) {
    const tr_plan_request *r = &run->request;
    const tr_settings *s = &run->settings;
    char memory[32], ranks[32] = "", trained[80] = "";
    tr__print_size(memory, sizeof memory, tr_plan_ledger(plan)->total[TR_SPACE_DEVICE]);
    if (r->ranks > 1) {
        snprintf(ranks, sizeof ranks, " x %lld ranks", (long long)r->ranks);
    }
    if (tr_plan_trained(plan) < tr_plan_parameters(plan)) {
        snprintf(trained, sizeof trained, " (%lld trained, %lld frozen)",
                 (long long)tr_plan_trained(plan),
                 (long long)(tr_plan_parameters(plan) - tr_plan_trained(plan)));
    }
    tr__note(&run->log, "model %s, %lld parameters%s%s%s; data: %s", run->model->type,
             (long long)tr_plan_parameters(plan), trained,
             run->weights ? ", from " : "", run->weights ? run->weights : "",
             tr_dataset_about(run->train));
    tr__note(&run->log,
             "batch %lld = %lld x %lld accumulation step%s%s; %lld optimizer step%s; "
             "planned memory %s",
             (long long)r->train_batch_size, (long long)r->micro_batch,
             (long long)r->accumulation_steps, tr__plural(r->accumulation_steps), ranks,
             (long long)s->steps, tr__plural(s->steps), memory);
    say_how(run, plan);
    tr__run_say_groups(run, plan);
    say_no_noise(run, plan);
    say_left_out(run, plan);
    say_scaling(run);
    say_batches(run);
    say_guard(run);
    say_dropout(run);
    say_ranks(run, &plan->request);
    tr__note(&run->log, "out: %s", s->out);
}

// Is the plan of a batch that the run may come to within all limits? Collective.
static tr_status fits_at(const tr_run *run, const tr_plan *plan, int64_t batch,
                         tr_error *err) {
    tr_plan *later = NULL;
    tr_status status = tr__plan_resize(run, plan, batch, &later, err);
    tr_plan_destroy(later);
    return status;
}

// An adaptive batch grows as far as there is memory: between `fits` and `most`, which
// does not fit, as whole micro-batches of all ranks.
static tr_status limit_batch(tr_run *run, const tr_plan *plan, int64_t fits,
                             int64_t most, tr_error *err) {
    tr_batches *batches = &run->settings.batches;
    while (most - fits > batches->multiple) {
        int64_t middle = fits + tr__round_up((most - fits) / 2, batches->multiple);
        middle = tr__min_i64(middle, most - 1);
        tr_error why = {0};
        tr_status status = fits_at(run, plan, middle, &why);
        if (status != TR_OK && status != TR_BUDGET) {
            return tr_fail(err, status, "%s", why.message);
        }
        if (status == TR_OK) {
            fits = middle;
        } else {
            most = middle;
        }
    }
    tr__warn(&run->log,
             "adaptive_batch.most is %lld, for which there is no memory: the batch "
             "grows to %lld at most",
             (long long)batches->most, (long long)fits);
    batches->most = fits;
    return TR_OK;
}

// The largest batch that the run may come to, before anything is begun. Collective.
static tr_status fits_later(tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_batches *batches = &run->settings.batches;
    int64_t first = plan->request.train_batch_size;
    int64_t largest = tr__batches_largest(batches);
    tr_error why = {0};
    tr_status status = largest > first ? fits_at(run, plan, largest, &why) : TR_OK;
    if (status == TR_BUDGET && batches->adaptive) {
        return limit_batch(run, plan, first, largest, err);
    }
    return status == TR_OK ? TR_OK
                           : tr_fail(err, status,
                                     "an effective batch of %lld, to which this run "
                                     "comes later: %.900s",
                                     (long long)largest, why.message);
}

// Two runs in one folder would mix their metrics and take each other's checkpoints.
static tr_status take_folder(tr_run *run, tr_error *err) {
    const char *out = run->settings.out;
    char checkpoints[PATH_MAX];
    tr_status status = tr__folder_create(out, err);
    if (status == TR_OK) {
        status = tr__checkpoints_path(out, checkpoints, err);
    }
    if (status == TR_OK && run->lock < 0 && !tr__folder_hold(out, &run->lock)) {
        status = tr_fail(err, TR_IO,
                         "%s: another run is at work in this folder: wait for its end, "
                         "or give this one another \"out\" (--out)",
                         out);
    }
    return status;
}

tr_status tr_run_begin(tr_run *run, const tr_plan *plan, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr__run_agree(run, plan, err);
    if (status != TR_OK) {
        return status;
    }
    status = tr__run_check_patterns(run, plan, &mine);
    if (status == TR_OK) {
        status = tr__run_fits(run, plan, &mine);
    }
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK) {
        status = fits_later(run, plan, err);
    }
    if (status != TR_OK) {
        return status;
    }
    status = tr__comm_leads(run->comm) ? take_folder(run, &mine) : TR_OK;
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK) {
        say_start(run, plan);
    }
    return status;
}
