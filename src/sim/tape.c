#include "sim/tape.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

enum { WORKS_LOOKED_AT = 64 };

typedef struct maker {
    const tr_plan *plan;
    const tr_sequence *sequence;
    int64_t micros; // that are there; 0: all
    tr_tape *out;
    struct {
        const tr_program *program;
        int32_t work;
    } known[TR_VARIANTS]; // the last of each variant
    tr_error *err;
} maker;

// ---- what a step asks for

static tr_tape_work work_of_program(const maker *m, const tr_plan_step *step,
                                    const tr_program *program) {
    tr_work_seconds work = tr__program_work(&m->out->share, program);
    const double *of = work.of;
    bool again = tr__step_runs(step, TR_VARIANT_RECOMPUTE);
    return (tr_tape_work){.seconds = of[TR_WORK_PRODUCTS] + of[TR_WORK_ATTENTION] +
                                     of[TR_WORK_OTHER],
                          .variance = work.variance,
                          .products = of[TR_WORK_PRODUCTS],
                          .attention = of[TR_WORK_ATTENTION],
                          .flops = program->cost.flops,
                          .model_flops = again ? 0 : program->cost.flops};
}

static tr_tape_work work_of_ops(const maker *m, const tr_plan_step *step) {
    double seconds = tr__step_seconds(&m->out->share, m->plan, step);
    double apart = m->out->share.machine->reached.spread * seconds;
    return (tr_tape_work){.seconds = seconds, .variance = apart * apart};
}

static tr_tape_work work_of_job(const maker *m, const tr_plan_step *step) {
    bool launch = step->shape == TR_STEP_IS_LAUNCH;
    return (tr_tape_work){.seconds =
                              launch ? tr__step_seconds(&m->out->share, m->plan, step)
                                     : tr__move_seconds(&m->out->share, m->plan, step),
                          .copied = tr__step_copied(m->plan, step),
                          .stored = tr__step_stored(m->plan, step)};
}

// Two stages' messages and tied tensors are exchanged by one rank of each; what all
// ranks exchange, by all of each stage.
static void find_stages(const tr_plan *plan, const tr_plan_step *step,
                        tr_tape_work *work) {
    const tr_exchange *e = &step->payload.exchange;
    int64_t stages = plan->request.mesh.size[TR_AXIS_PIPELINE];
    work->meets = stages > 1 && e->group & TR_ON_PIPELINE;
    if (!work->meets) {
        return;
    }
    bool pair = tr__exchange_is_pair(e);
    work->hash = tr__exchange_hash(step);
    work->members /= pair ? 2 : stages;
    work->stages[0] = pair ? (int32_t)tr__min_i64(e->from, e->to) : 0;
    work->stages[1] = pair ? (int32_t)tr__max_i64(e->from, e->to) : 0;
}

static tr_tape_work work_of_exchange(const maker *m, const tr_plan_step *step) {
    tr_transfer transfer;
    tr_tape_work work = {0};
    if (tr__step_transfer(m->plan, step, &transfer)) {
        int64_t sent = tr__transfer_sent(&transfer);
        bool gather = transfer.kind == TR_COMM_GATHER;
        work.seconds = tr__transfer_seconds(&m->out->share, &transfer);
        work.gathered = gather ? sent : 0;
        work.reduced = gather ? 0 : sent;
        work.between = tr__transfer_between(&transfer);
        work.members = transfer.members;
        find_stages(m->plan, step, &work);
    }
    return work;
}

// Does the step go on beside computing, as one piece of work?
static bool is_job(const maker *m, const tr_plan_step *step) {
    bool host = step->stream == TR_STREAM_HOST;
    bool adds = step->stream == TR_STREAM_COMM && step->shape == TR_STEP_IS_LAUNCH;
    return tr__stream_copies(step->stream) || step->stream == TR_STREAM_NVME || adds ||
           (host && !m->out->share.machine->host_is_device);
}

// ---- the tape

static bool is_same(const tr_tape_work *a, const tr_tape_work *b) {
    return a->seconds == b->seconds && a->variance == b->variance &&
           a->products == b->products && a->attention == b->attention &&
           a->flops == b->flops && a->model_flops == b->model_flops &&
           a->gathered == b->gathered && a->reduced == b->reduced &&
           a->between == b->between && a->copied == b->copied &&
           a->stored == b->stored && a->members == b->members && a->meets == b->meets &&
           a->stages[0] == b->stages[0] && a->stages[1] == b->stages[1] &&
           a->hash == b->hash;
}

static tr_status add_work(maker *m, const tr_tape_work *work, int32_t *at) {
    tr_tape *out = m->out;
    size_t first =
        out->work_count > WORKS_LOOKED_AT ? out->work_count - WORKS_LOOKED_AT : 0;
    for (size_t i = out->work_count; i > first; i--) {
        if (is_same(&out->works[i - 1], work)) {
            *at = (int32_t)(i - 1);
            return TR_OK;
        }
    }
    if (!tr__grow((void **)&out->works, &out->work_capacity, out->work_count + 1,
                  sizeof *out->works)) {
        return tr_fail(m->err, TR_MEMORY, "no memory for a simulation");
    }
    out->works[out->work_count] = *work;
    *at = (int32_t)out->work_count++;
    return TR_OK;
}

// Most steps of a variant run the same program as the last.
static tr_status find_program(maker *m, const tr_plan_step *step,
                              const tr_program *program, int32_t *at) {
    tr_status status = TR_OK;
    if (m->known[program->variant].program != program) {
        tr_tape_work work = work_of_program(m, step, program);
        status = add_work(m, &work, at);
        m->known[program->variant].program = program;
        m->known[program->variant].work = *at;
    }
    *at = m->known[program->variant].work;
    return status;
}

// Its micro-batch is not there. The step is left out, and counts on its stream.
static bool is_of_none(const maker *m, const tr_plan_step *step) {
    return m->micros > 0 && step->of_micro_batch && step->micro >= m->micros;
}

static tr_tape_kind kind_of(const maker *m, const tr_plan_step *step) {
    bool exchange = step->shape == TR_STEP_IS_EXCHANGE;
    return is_job(m, step) || (exchange && is_of_none(m, step)) ? TR_TAPE_JOB
           : exchange                                           ? TR_TAPE_EXCHANGE
                                                                : TR_TAPE_COMPUTE;
}

static tr_tape_work work_of(const maker *m, const tr_plan_step *step,
                            tr_tape_kind kind) {
    return is_of_none(m, step)        ? (tr_tape_work){0}
           : kind == TR_TAPE_JOB      ? work_of_job(m, step)
           : kind == TR_TAPE_EXCHANGE ? work_of_exchange(m, step)
                                      : work_of_ops(m, step);
}

static tr_status add_step(maker *m, int32_t index) {
    const tr_plan_step *step = &m->sequence->steps[index];
    const tr_program *program = tr__payload_program(step);
    tr_tape_step to = {.step = index,
                       .unit = step->unit,
                       .micro = (int32_t)step->micro,
                       .stream = (uint8_t)step->stream,
                       .verb = (uint8_t)step->label.verb,
                       .subject = (uint8_t)step->subject,
                       .of_micro_batch = step->of_micro_batch,
                       .waits_for_all = step->mark == TR_MARK_DECISION};
    tr_tape *out = m->out;
    tr_tape_kind kind = kind_of(m, step);
    tr_status status;
    memcpy(to.wait, step->wait, sizeof to.wait);
    to.kind = (uint8_t)kind;
    if (kind == TR_TAPE_COMPUTE && program && !is_of_none(m, step)) {
        status = find_program(m, step, program, &to.work);
    } else {
        tr_tape_work work = work_of(m, step, kind);
        status = add_work(m, &work, &to.work);
    }
    if (status == TR_OK && !tr__grow((void **)&out->steps, &out->capacity,
                                     out->count + 1, sizeof *out->steps)) {
        status = tr_fail(m->err, TR_MEMORY, "no memory for a simulation");
    }
    if (status == TR_OK) {
        out->steps[out->count++] = to;
    }
    return status;
}

tr_status tr__tape_make(const tr_plan *plan, tr_tape_part part,
                        const tr_machine *machine, tr_tape *out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[part.kind];
    maker m = {.plan = plan,
               .sequence = sequence,
               .micros = part.micros,
               .out = out,
               .err = err};
    tr_status status = TR_OK;
    *out = (tr_tape){.stage = plan->request.mesh.at[TR_AXIS_PIPELINE]};
    out->share = tr__machine_share(machine, tr_mesh_ranks(&plan->request.mesh),
                                   plan->ledger.total[TR_SPACE_DEVICE]);
    for (size_t i = 0; i < sequence->count && status == TR_OK; i++) {
        if (sequence->steps[i].guard != TR_GUARD_AT_ONCE) {
            status = add_step(&m, (int32_t)i);
        }
    }
    return status;
}

void tr__tape_clear(tr_tape *tape) {
    tr__free(tape->steps);
    tr__free(tape->works);
    *tape = (tr_tape){0};
}

bool tr__tape_needs(const tr_tape_work *a, int64_t stage) {
    return a->stages[0] == a->stages[1] || stage == a->stages[0] ||
           stage == a->stages[1];
}

bool tr__tape_meet(const tr_tape_work *a, const tr_tape_work *b) {
    return a->meets && b->meets && a->hash == b->hash && a->stages[0] == b->stages[0] &&
           a->stages[1] == b->stages[1];
}
