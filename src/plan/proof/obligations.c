// What must come out of a walk, from request and model alone.
#include "ops/flat/update/update.h"
#include "plan/proof/unit.h"
#include "plan/proof/walks.h"
#include "plan/units/freeze.h"

static void missing(tr_proof *p, const char *what, const char *of) {
    if (p->status == TR_OK) {
        p->status =
            tr_fail(p->err, TR_INTERNAL, "plan: %s ends and %s of %s are not %s",
                    tr__sequence_name(p->kind), what, of, "the newest");
    }
}

// All data have been read so often, and given back. A forward runs a second time on all
// micro-batches or on none.
static void oblige_rounds(tr_proof *p, int64_t rounds, int64_t micros) {
    int64_t all = rounds * micros;
    bool given_back = p->walked.loaded == all && p->walked.unloaded == all;
    if (p->status == TR_OK && !given_back && p->kind != TR_SEQUENCE_INFERENCE) {
        p->status =
            tr_fail(p->err, TR_INTERNAL, "plan: %s ends before all data are given back",
                    tr__sequence_name(p->kind));
    }
    for (int u = 0; u < p->plan->unit_count && p->status == TR_OK; u++) {
        if (p->walked.again[u] != 0 && p->walked.again[u] != micros) {
            p->status = tr_fail(p->err, TR_INTERNAL,
                                "plan: %s ends before all micro-batches have been "
                                "through %s again",
                                tr__sequence_name(p->kind),
                                p->plan->request.model->units[u].name);
        }
    }
}

void tr__oblige_work(tr_proof *p) {
    bool training = p->kind == TR_SEQUENCE_TRAIN;
    int64_t micros = p->present;
    for (int u = tr__plan_next(p->plan, 0);
         u < p->plan->unit_count && p->status == TR_OK;
         u = tr__plan_next(p->plan, u + 1)) {
        for (int32_t s = p->tables.segments[u]; s < p->tables.segments[u + 1]; s++) {
            bool back = training && tr__unit_has_backward(p->plan->units[u].program);
            bool whole = p->walked.forward[s] == micros &&
                         p->walked.backward[s] == (back ? micros : 0);
            if (!whole && p->status == TR_OK && p->kind != TR_SEQUENCE_INFERENCE) {
                p->status = tr_fail(p->err, TR_INTERNAL,
                                    "plan: %s ends before all micro-batches have been "
                                    "through %s",
                                    tr__sequence_name(p->kind),
                                    p->plan->request.model->units[u].name);
            }
        }
    }
    oblige_rounds(p, training && p->plan->request.passes > 1 ? 3 : 1, micros);
    bool outputs =
        p->plan->hands_out && tr__plan_runs(p->plan, p->plan->unit_count - 1);
    if (p->status == TR_OK && p->walked.handed != (outputs ? micros : 0)) {
        p->status = tr_fail(p->err, TR_INTERNAL,
                            "plan: %s ends before the caller has all outputs",
                            tr__sequence_name(p->kind));
    }
}

// This rank's part of what is kept.
static bool is_newest(tr_proof *p, tr_kept kept, int32_t flat, int32_t updates) {
    const tr_flat *f = &p->plan->flats[flat];
    bool shards = tr__plan_stage(p->plan) > 0;
    int64_t first = shards ? f->first : 0, count = shards ? f->own : f->count;
    if (f->frozen) { // all that there is of it, as it was
        return kept.buffer < 0 ||
               tr__bytes_mean(p, tr__kept_bytes(p, &kept, kept.first, kept.count),
                              &kept.means);
    }
    kept.means.version += updates;
    return tr__bytes_mean(p, tr__kept_bytes(p, &kept, first, count), &kept.means);
}

static void oblige_flat(tr_proof *p, int32_t f, int32_t updates) {
    const char *name = p->plan->flats[f].name;
    if (!is_newest(p, tr__kept_part(p, f, TR_PART_PARAM), f, updates)) {
        missing(p, "the parameters", name);
    }
    if (!is_newest(p, tr__kept_part(p, f, TR_PART_COPY), f, updates)) {
        missing(p, "what is used of the parameters", name);
    }
    for (int s = 0; s < tr__flat_states(p->plan, &p->plan->flats[f]); s++) {
        tr_part part = (tr_part)(TR_PART_STATE + s);
        if (!is_newest(p, tr__kept_part(p, f, part), f, updates)) {
            missing(p, "the optimizer's states", name);
        }
    }
}

static void oblige_state(tr_proof *p, const tr_plan_state *state, int32_t tracks) {
    tr_meaning newest = {.kind = TR_MEANS_MODEL_STATES,
                         .of = state->unit,
                         .version = p->version + tracks};
    if (!tr__bytes_mean(p, tr__state_bytes(p, state), &newest)) {
        missing(p, "the model's states", state->name);
    }
}

void tr__oblige_versions(tr_proof *p, int32_t updates, int32_t tracks) {
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        oblige_flat(p, f, updates);
    }
    for (size_t i = 0; i < p->plan->state_count && p->status == TR_OK; i++) {
        oblige_state(p, &p->plan->states[i], tracks);
    }
}

void tr__oblige_synced(tr_proof *p) {
    bool shards = tr__plan_stage(p->plan) == 3;
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        tr_kept kept = tr__kept_params(p, f);
        bool frozen = p->plan->flats[f].frozen;
        if (kept.buffer >= 0 && !shards && !frozen && p->others[f] != p->version) {
            missing(p, "other ranks' parts of the parameters", p->plan->flats[f].name);
        }
        if (kept.buffer >= 0 && !shards &&
            !tr__bytes_mean(p, tr__kept_bytes(p, &kept, 0, p->plan->flats[f].count),
                            &kept.means)) {
            missing(p, "parameters", p->plan->flats[f].name);
        }
    }
}

static void oblige_bytes(tr_proof *p, tr_bytes bytes, const tr_meaning *want,
                         const char *what) {
    if (p->status == TR_OK && !tr__bytes_mean(p, bytes, want)) {
        p->status = tr_fail(p->err, TR_INTERNAL, "plan: %s ends without its %s",
                            tr__sequence_name(p->kind), what);
    }
}

// Of each micro-batch, where it has its share. A stage without a loss leaves zeros, and
// so do micro-batches that are not there.
static void oblige_losses(tr_proof *p) {
    const tr_losses *of = &p->tables.evaluated;
    const tr_meaning zeros = {.kind = TR_MEANS_ZEROS};
    for (int64_t j = 0; j < p->plan->evaluated; j++) {
        const tr_meaning loss = {
            .kind = TR_MEANS_LOSS, .index = j, .terms = of->terms, .sum = of->sum};
        bool some = of->terms > 0 && j < p->present;
        oblige_bytes(p, tr__evaluated_sums(p, j), some ? &loss : &zeros, "loss");
    }
}

void tr__oblige_logits(tr_proof *p) {
    const tr_meaning logits = {.kind = TR_MEANS_LOGITS};
    int32_t buffer = p->plan->logits;
    if (p->plan->hands_out) { // the caller has outputs instead
        return;
    }
    if (p->kind == TR_SEQUENCE_EVALUATE) {
        oblige_losses(p);
    } else {
        oblige_bytes(p, (tr_bytes){buffer, 0, p->plan->buffers[buffer].bytes}, &logits,
                     "logits");
    }
}

// ---- what is trained

// As the request says it by the names of the model's parameters. What lies in a flat
// buffer that is frozen has no update, and what lies in another one has.
void tr__oblige_trained(tr_proof *p) {
    for (size_t i = 0; i < p->plan->param_count && p->status == TR_OK; i++) {
        const tr_plan_param *param = &p->plan->params[i];
        // What is in few bits is so in an inference, too.
        bool frozen = param->quantized
                          ? tr__matches_frozen(&p->plan->request, param->stored)
                          : tr__is_frozen(&p->plan->request, param->stored);
        if (frozen != p->plan->flats[param->flat].frozen) {
            p->status = tr_fail(p->err, TR_INTERNAL,
                                "plan: %s is to be %s, and lies among what is not",
                                param->name, frozen ? "frozen" : "trained");
        }
    }
}

// ---- guards

bool tr__proof_defers(const tr_proof *p) {
    return p->at_once < p->plan->sequences[TR_SEQUENCE_TRAIN].count;
}

// One of no elements launches nothing.
static bool updates(const tr_proof *p, const tr_plan_step *step) {
    const tr_op *op = tr__step_op(p->plan, step);
    bool launches = step->shape == TR_STEP_IS_LAUNCH && !tr__payload_program(step);
    bool nothing = !op && step->subject == TR_OF_FLAT;
    return launches && (nothing || op == &tr__op_update);
}

// A walk is over at the decision where the update is skipped, so all that comes behind
// it is of the update, and nothing before it is. What goes on beside is counted by
// those who wait for it, and other ranks wait for an exchange, so an interruption
// cannot leave it out; of an update that is not there, only what the NVMe stream does
// is counted.
static const char *find_fault(const tr_proof *p, size_t index) {
    const tr_plan_step *step = p->step;
    bool train = p->kind == TR_SEQUENCE_TRAIN;
    bool at_once = step->guard == TR_GUARD_AT_ONCE;
    bool applied = step->guard == TR_GUARD_APPLIED || at_once;
    bool update = train && index >= p->update;
    bool awaited =
        tr__stream_is_beside(step->stream) || step->shape == TR_STEP_IS_EXCHANGE;
    if (applied != update) {
        return "is of the update, or in it, and not both";
    }
    if (at_once != (train && index >= p->at_once)) {
        return "is of what may be left to the next step, or behind it, and not both";
    }
    if (tr__decides(step) && step->guard != TR_GUARD_ALWAYS) {
        return "may be left out, while the walk is over there";
    }
    if (awaited && step->guard == TR_GUARD_RUNNING) {
        return "may be left out, while others wait for it";
    }
    if (step->guard == TR_GUARD_DEFERRED &&
        (!tr__proof_defers(p) ||
         (!updates(p, step) && step->stream != TR_STREAM_NVME))) {
        return "is of an update that no step leaves to the next";
    }
    return NULL;
}

void tr__oblige_guards(tr_proof *p) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &p->plan->sequences[kind];
        p->kind = (tr_sequence_kind)kind;
        for (size_t i = 0; i < sequence->count && p->status == TR_OK; i++) {
            p->step = &sequence->steps[i];
            p->index = (int32_t)i;
            const char *fault = find_fault(p, i);
            if (fault) {
                tr__proof_wrong(p, "%s", fault);
            }
        }
    }
}
