// The walk of a plan as the executor does it (exec/walk/walk.c), with a clock in place
// of kernels. Steps of the compute stream follow each other; messages, copies, what
// NVMe reads and writes and what the host computes are queued when they are reached,
// worked off one after the other on their streams, beside each other and what is
// computed, until a step waits. Where the host's processors are the device, the host's
// steps are of the compute stream.
//
// Kernels of other ranks take longer or less: an exchange begins when the slowest of
// its group is expected to come to it, by how much was computed since ranks last waited
// for each other.
//
// While a kernel and a message are at work at the same time, each goes on at 1 - i of
// its speed, where i is the machine's interference of the two; so do a kernel and a
// copy, and a kernel and NVMe.
#include "sim/simulate.h"

#include "base/arguments.h"
#include "base/checked.h"
#include "base/memory.h"

#include <math.h>

enum { QUEUE = TR_COMM_QUEUE }; // so many may wait on a stream

#define LEAST_SPEED 0.1 // of computing, whatever goes on beside it

// What is queued or under way on a stream.
typedef struct job {
    int32_t step;
    double left;  // seconds of work
    double begin; // when it came to the front, or could begin
    // When the slowest rank of its group comes to it; 0: it has.
    double ready;
    double variance; // of what this rank had computed until then
} job;

typedef struct stream {
    job queue[QUEUE]; // a ring
    size_t first, count;
    int64_t done;         // steps
    double variance;      // of the last of them
    double interference;  // with computing
    double busy, exposed; // seconds at work; in which nothing was computed
} stream;

typedef struct walk {
    tr_simulated *out;
    const tr_plan *plan;
    tr_share share;
    double now;
    double variance;            // of the time of what has been computed
    double together;            // the same when ranks last waited for each other
    stream streams[TR_STREAMS]; // those that work beside the walk
    struct {
        const tr_program *program;
        tr_work_seconds work;
    } known[TR_VARIANTS]; // the last of each variant
    tr_error *err;
    tr_status status;
} walk;

static void add_span(walk *w, int32_t step, tr_stream on, double begin) {
    tr_simulated *out = w->out;
    if (w->status == TR_OK && !tr__grow((void **)&out->spans, &out->span_capacity,
                                        out->span_count + 1, sizeof *out->spans)) {
        w->status = tr_fail(w->err, TR_MEMORY, "no memory for a simulation");
    }
    if (w->status == TR_OK) {
        out->spans[out->span_count++] = tr__span_of(
            &w->plan->sequences[TR_SEQUENCE_TRAIN], step, on, begin, w->now);
    }
}

static const tr_plan_step *step_at(const walk *w, int32_t step) {
    return &w->plan->sequences[TR_SEQUENCE_TRAIN].steps[step];
}

// ---- what goes on beside each other

static void finish_job(walk *w, tr_stream on) {
    stream *s = &w->streams[on];
    const job *front = &s->queue[s->first];
    const tr_plan_step *step = step_at(w, front->step);
    double took = w->now - front->begin;
    add_span(w, front->step, on, front->begin);
    w->out->verb_seconds[step->label.verb] += took;
    s->busy += took;
    s->variance = front->variance;
    s->done++;
    s->first = (s->first + 1) % QUEUE;
    s->count--;
    s->queue[s->first].begin = w->now;
}

// Does it wait for slower ranks?
static bool is_late(const walk *w, const stream *s) {
    return s->count > 0 && s->queue[s->first].ready > w->now;
}

// The speed of computing beside what is under way.
static double compute_speed(const walk *w) {
    double speed = 1;
    for (int i = 0; i < TR_STREAMS; i++) {
        const stream *s = &w->streams[i];
        speed -= s->count > 0 && !is_late(w, s) ? s->interference : 0;
    }
    return speed > LEAST_SPEED ? speed : LEAST_SPEED;
}

// What the front of a stream needs to be ready, or to be done.
typedef struct need {
    double seconds; // negative: nothing is there
    double speed;   // of its own
    bool late;
} need;

static need need_of(const walk *w, const stream *s, bool beside) {
    const job *front = &s->queue[s->first];
    need n = {-1, beside ? 1 - s->interference : 1, is_late(w, s)};
    if (s->count > 0) {
        n.seconds = n.late ? front->ready - w->now : front->left / n.speed;
    }
    return n;
}

// The front of a stream goes on for `step` seconds.
static void advance_job(walk *w, tr_stream on, double step, const need *n) {
    job *front = &w->streams[on].queue[w->streams[on].first];
    if (n->late) {
        front->ready = n->seconds <= step ? 0 : front->ready;
        front->begin = w->now;
        return;
    }
    front->left -= step * n->speed;
    if (n->seconds <= step) {
        finish_job(w, on);
    }
}

// Until something is done, or ready: the front of a stream, or `*compute` seconds of
// computing (NULL: nothing is computed). Returns the time that it took.
static double advance(walk *w, double *compute) {
    double speed = compute ? compute_speed(w) : 1,
           step = compute ? *compute / speed : -1;
    need needs[TR_STREAMS];
    for (int i = 0; i < TR_STREAMS; i++) {
        needs[i] = need_of(w, &w->streams[i], compute != NULL);
        double seconds = needs[i].seconds;
        step = seconds >= 0 && (step < 0 || seconds < step) ? seconds : step;
    }
    w->now += step;
    if (compute) {
        bool ends = *compute / speed <= step;
        *compute = ends ? 0 : *compute - step * speed;
    }
    for (int i = 0; i < TR_STREAMS; i++) {
        if (needs[i].seconds >= 0) {
            advance_job(w, (tr_stream)i, step, &needs[i]);
        }
    }
    return step;
}

// Waits until `done` steps of a stream are done, or nothing is left on it.
static void wait_for(walk *w, tr_stream on, int64_t done) {
    stream *s = &w->streams[on];
    bool waits = s->done < done && s->count > 0;
    while (s->done < done && s->count > 0) {
        double *spent = is_late(w, s) ? &w->out->result.slower_seconds : &s->exposed;
        *spent += advance(w, NULL);
    }
    if (waits && (on == TR_STREAM_COMM || on == TR_STREAM_DATA)) {
        w->together = fmax(w->together, s->variance);
    }
}

static void add_job(walk *w, tr_stream on, int32_t step, double seconds) {
    stream *s = &w->streams[on];
    if (s->count == QUEUE) {
        wait_for(w, on, s->done + 1);
    }
    s->queue[(s->first + s->count++) % QUEUE] =
        (job){step, seconds, w->now, 0, w->variance};
}

// It begins when the last rank of its group has come to it.
static void add_exchange(walk *w, tr_stream on, int32_t step,
                         const tr_transfer *transfer) {
    double apart = sqrt(fmax(0, w->variance - w->together));
    stream *s = &w->streams[on];
    add_job(w, on, step, tr__transfer_seconds(&w->share, transfer));
    if (apart > 0) {
        s->queue[(s->first + s->count - 1) % QUEUE].ready =
            w->now + tr__reached_slowest(transfer->members) * apart;
    }
}

// The walk waits for what it exchanges itself.
static void start_transfer(walk *w, int32_t step) {
    tr_stream on = step_at(w, step)->stream;
    tr_simulation *result = &w->out->result;
    tr_transfer transfer;
    if (tr__step_transfer(w->plan, step_at(w, step), &transfer)) {
        bool gather = transfer.kind == TR_COMM_GATHER;
        *(gather ? &result->gather_bytes : &result->reduce_bytes) +=
            tr__transfer_sent(&transfer);
        result->between_bytes += tr__transfer_between(&transfer);
        add_exchange(w, on, step, &transfer);
    }
    if (on == TR_STREAM_DATA) {
        wait_for(w, on, INT64_MAX);
    }
}

// Does the step go on beside computing, as one piece of work?
static bool is_job(const walk *w, const tr_plan_step *step) {
    bool host = step->stream == TR_STREAM_HOST;
    bool adds = step->stream == TR_STREAM_COMM && step->shape == TR_STEP_IS_LAUNCH;
    return step->stream == TR_STREAM_COPY || step->stream == TR_STREAM_NVME || adds ||
           (host && !w->share.machine->host_is_device);
}

static void start_job(walk *w, int32_t index) {
    const tr_plan_step *step = step_at(w, index);
    w->out->result.copied_bytes += tr__step_copied(w->plan, step);
    w->out->result.stored_bytes += tr__step_stored(w->plan, step);
    add_job(w, step->stream, index,
            step->shape == TR_STEP_IS_LAUNCH
                ? tr__step_seconds(&w->share, w->plan, step)
                : tr__move_seconds(&w->share, w->plan, step));
}

// ---- computing

static void compute(walk *w, double seconds) {
    double left = seconds;
    w->out->result.compute_seconds += seconds;
    while (left > 0) {
        double before = left;
        double took = advance(w, &left);
        double slowed = took - (before - left);
        w->out->result.slowed_seconds += slowed > 0 ? slowed : 0;
    }
}

// Most steps of a variant run the same program as the last. What its kernels do is
// counted.
static double seconds_of(walk *w, const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    if (!program) {
        double seconds = tr__step_seconds(&w->share, w->plan, step);
        double apart = w->share.machine->reached.spread * seconds;
        w->variance += apart * apart;
        return seconds;
    }
    if (w->known[program->variant].program != program) {
        w->known[program->variant].program = program;
        w->known[program->variant].work = tr__program_work(&w->share, program);
    }
    const double *of = w->known[program->variant].work.of;
    w->variance += w->known[program->variant].work.variance;
    w->out->result.product_seconds += of[TR_WORK_PRODUCTS];
    w->out->result.attention_seconds += of[TR_WORK_ATTENTION];
    return of[TR_WORK_PRODUCTS] + of[TR_WORK_ATTENTION] + of[TR_WORK_OTHER];
}

static void count_flops(walk *w, const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    double flops = program ? program->cost.flops : 0;
    w->out->result.flops += flops;
    w->out->result.model_flops += tr__step_runs(step, TR_VARIANT_RECOMPUTE) ? 0 : flops;
}

// ---- the walk

static void run_step(walk *w, int32_t index) {
    const tr_plan_step *step = step_at(w, index);
    w->out->verb_steps[step->label.verb]++;
    for (int s = 0; s < TR_STREAMS; s++) {
        wait_for(w, (tr_stream)s, step->wait[s]);
    }
    if (is_job(w, step)) {
        start_job(w, index);
        return;
    }
    if (step->shape == TR_STEP_IS_EXCHANGE) {
        start_transfer(w, index);
        return;
    }
    double begin = w->now, seconds = seconds_of(w, step);
    compute(w, seconds);
    count_flops(w, step);
    w->out->result.update_seconds += step->label.verb == TR_VERB_update ? seconds : 0;
    w->out->verb_seconds[step->label.verb] += w->now - begin;
    add_span(w, index, step->stream, begin);
}

static void wait_for_all(walk *w) {
    for (int s = 0; s < TR_STREAMS; s++) {
        wait_for(w, (tr_stream)s, INT64_MAX);
    }
}

// A step makes the update that the one before has deferred to it, and defers its own.
// Nothing moves when the engine decides, nor when the step is over.
static void run_all(walk *w) {
    const tr_sequence *train = &w->plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < train->count && w->status == TR_OK; i++) {
        if (train->steps[i].mark == TR_MARK_DECISION) {
            wait_for_all(w);
        }
        if (train->steps[i].guard != TR_GUARD_AT_ONCE) {
            run_step(w, (int32_t)i);
        }
    }
    wait_for_all(w);
}

// By the literature's formulas.
static void conclude_literature(const walk *w, double possible) {
    tr_simulation *r = &w->out->result;
    double ranks = (double)tr_mesh_ranks(&w->plan->request.mesh);
    r->literature = tr_plan_model_flops(w->plan);
    const tr_model_flops *f = &r->literature;
    r->tokens_per_second_per_rank = r->tokens_per_second / ranks;
    r->tflops_per_rank = f->full / r->seconds / 1e12;
    r->mfu = f->full / possible;
    r->mfu_causal = f->causal / possible;
    r->hfu = (f->full + f->full_again) / possible;
    r->hfu_causal = (f->causal + f->causal_again) / possible;
}

static void conclude(const walk *w) {
    const tr_plan_request *request = &w->plan->request;
    const tr_machine *machine = w->share.machine;
    tr_simulation *r = &w->out->result;
    double possible =
        tr__machine_flops(machine, request->compute) * w->share.part * w->now;
    r->seconds = w->now;
    r->communication_seconds =
        w->streams[TR_STREAM_COMM].busy + w->streams[TR_STREAM_DATA].busy;
    r->copy_seconds = w->streams[TR_STREAM_COPY].busy;
    r->nvme_seconds = w->streams[TR_STREAM_NVME].busy;
    r->host_seconds = w->streams[TR_STREAM_HOST].busy;
    r->exposed_seconds =
        w->streams[TR_STREAM_COMM].exposed + w->streams[TR_STREAM_DATA].exposed;
    r->exposed_copy_seconds = w->streams[TR_STREAM_COPY].exposed;
    r->exposed_nvme_seconds = w->streams[TR_STREAM_NVME].exposed;
    r->exposed_host_seconds = w->streams[TR_STREAM_HOST].exposed;
    r->samples_per_second = (double)request->train_batch_size / w->now;
    r->tokens_per_second =
        r->samples_per_second * (double)tr_model_targets(request->model);
    r->utilisation = r->flops / possible;
    r->model_utilisation = r->model_flops / possible;
    r->other_seconds = r->compute_seconds - r->product_seconds - r->attention_seconds -
                       r->update_seconds;
    conclude_literature(w, possible);
    for (int s = 0; s < TR_SPACES; s++) {
        bool own = s == TR_SPACE_DEVICE && !machine->shared;
        r->planned_bytes[s] = w->plan->ledger.total[s];
        r->machine_bytes[s] = machine->capacity[s] / (own ? 1 : w->share.sharers);
    }
}

static tr_status check_way(const tr_machine *machine, tr_way way, const char *who,
                           tr_error *err) {
    return machine->way[way].rate > 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "machine %.200s: %s need %s.bytes, which is not there",
                         machine->name, who, tr__way_key(way));
}

// The ways on which the plan's steps move something.
static void find_ways(const tr_plan *plan, bool used[TR_WAYS]) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        if (tr__step_copied(plan, step) + tr__step_stored(plan, step) > 0) {
            used[tr__move_way(plan, step)] = true;
        }
        used[TR_WAY_TO_HOST] |= tr__step_reach(plan, step).written > 0;
    }
}

static tr_status check_ways(const tr_share *share, const tr_plan *plan, tr_error *err) {
    static const char *const who[TR_WAYS] = {
        "several ranks on a node", "several nodes",       "plans that offload",
        "plans that offload",      "plans that use NVMe", "plans that use NVMe"};
    const tr_machine *m = share->machine;
    bool used[TR_WAYS] = {[TR_WAY_INSIDE] = share->sharers > 1,
                          [TR_WAY_BETWEEN] = share->ranks > share->sharers};
    tr_status status = TR_OK;
    find_ways(plan, used);
    for (int way = 0; way < TR_WAYS && status == TR_OK; way++) {
        status = used[way] ? check_way(m, (tr_way)way, who[way], err) : TR_OK;
    }
    bool away = plan->request.optimizer_placement != TR_SPACE_DEVICE;
    if (status == TR_OK && away && m->host_rate == 0) {
        return tr_fail(err, TR_USAGE,
                       "machine %.200s: an optimizer on the host needs host.bytes, "
                       "which is not there",
                       m->name);
    }
    return status;
}

tr_status tr__simulate_check(const tr_plan *plan, const tr_machine *machine,
                             tr_error *err) {
    tr_share share = tr__machine_share(machine, tr_mesh_ranks(&plan->request.mesh),
                                       plan->ledger.total[TR_SPACE_DEVICE]);
    return check_ways(&share, plan, err);
}

tr_status tr_simulate(const tr_plan *plan, const tr_machine *machine,
                      tr_simulated **out, tr_error *err) {
    static const char own_name[] = "tr_simulate";
    tr_status given = tr__need(plan, own_name, "plan", err);
    given = given == TR_OK ? tr__need(machine, own_name, "machine", err) : given;
    given = given == TR_OK ? tr__need(out, own_name, "out", err) : given;
    if (given != TR_OK) {
        return given;
    }
    if (plan->request.inference) {
        return tr_fail(err, TR_USAGE, "only a training step can be simulated");
    }
    walk *w = tr__calloc(1, sizeof *w);
    tr_simulated *simulated = tr__calloc(1, sizeof *simulated);
    tr_status status = TR_OK;
    if (!w || !simulated) {
        status = tr_fail(err, TR_MEMORY, "no memory for a simulation");
        goto cleanup;
    }
    *simulated = (tr_simulated){.plan = plan, .machine = machine};
    simulated->result.size = sizeof simulated->result;
    *w = (walk){.out = simulated, .plan = plan, .err = err};
    w->share = tr__machine_share(machine, tr_mesh_ranks(&plan->request.mesh),
                                 plan->ledger.total[TR_SPACE_DEVICE]);
    w->streams[TR_STREAM_COMM].interference = machine->link_interference;
    w->streams[TR_STREAM_COPY].interference = machine->copy_interference;
    w->streams[TR_STREAM_NVME].interference = machine->nvme_interference;
    status = check_ways(&w->share, plan, err);
    if (status == TR_OK) {
        run_all(w);
        conclude(w);
        status = w->status;
    }
cleanup:
    tr__free(w);
    if (status != TR_OK) {
        tr_simulated_destroy(simulated);
        return status;
    }
    *out = simulated;
    return TR_OK;
}

void tr_simulated_destroy(tr_simulated *simulated) {
    if (simulated) {
        tr__free(simulated->spans);
        tr__free(simulated);
    }
}

const tr_simulation *tr_simulated_result(const tr_simulated *simulated) {
    return simulated ? &simulated->result : NULL;
}
