// The walk of a plan as the executor does it (exec/executor.c), with a clock in place
// of kernels. Steps of the compute stream follow each other; messages are queued when
// they are reached and worked off one after the other beside it, until a step waits.
//
// While a kernel and a message are at work at the same time, each goes on at 1 - i of
// its speed, where i is the machine's interference.
#include "sim/simulate.h"

#include "base/checked.h"
#include "base/memory.h"

// An operation of the ranks that is queued or under way.
typedef struct job {
    int32_t step;
    double left;  // seconds of work
    double begin; // when it came to the front
} job;

typedef struct walk {
    tr_simulated *out;
    const tr_plan *plan;
    tr_share share;
    double now;
    job queue[TR_COMM_QUEUE]; // a ring
    size_t first, count;
    int64_t done; // communication steps; combines' operations are not of them
    struct {
        const tr_program *program;
        double seconds;
    } known[TR_STEP_KINDS]; // the last of each kind
    tr_error *err;
    tr_status status;
} walk;

static void add_span(walk *w, int32_t step, tr_stream stream, double begin) {
    tr_simulated *out = w->out;
    if (w->status == TR_OK && !tr__grow((void **)&out->spans, &out->span_capacity,
                                        out->span_count + 1, sizeof *out->spans)) {
        w->status = tr_fail(w->err, TR_MEMORY, "no memory for a simulation");
    }
    if (w->status == TR_OK) {
        out->spans[out->span_count++] = (tr_span){step, stream, begin, w->now};
    }
}

// ---- messages
// ------------------------------------------------------------------------

static const tr_plan_step *step_at(const walk *w, int32_t step) {
    return &w->plan->sequences[TR_SEQUENCE_TRAIN].steps[step];
}

static void finish_job(walk *w) {
    const job *front = &w->queue[w->first];
    const tr_plan_step *step = step_at(w, front->step);
    add_span(w, front->step, TR_STREAM_COMM, front->begin);
    w->out->kind_seconds[step->kind] += w->now - front->begin;
    w->out->result.communication_seconds += w->now - front->begin;
    w->done += step->stream == TR_STREAM_COMM;
    w->first = (w->first + 1) % TR_COMM_QUEUE;
    w->count--;
    w->queue[w->first].begin = w->now;
}

// Nothing else is at work until the front of the queue is done.
static void wait_for_front(walk *w) {
    double left = w->queue[w->first].left;
    w->now += left;
    w->out->result.exposed_seconds += left;
    finish_job(w);
}

static void add_job(walk *w, int32_t step, double seconds) {
    if (w->count == TR_COMM_QUEUE) {
        wait_for_front(w);
    }
    size_t at = (w->first + w->count++) % TR_COMM_QUEUE;
    w->queue[at] = (job){step, seconds, w->now};
}

static void start_transfers(walk *w, int32_t step) {
    tr_transfer transfers[TR_TRANSFERS_AT_ONCE];
    tr_simulation *result = &w->out->result;
    size_t next = 0;
    int count;
    while ((count = tr__step_transfers(w->plan, step_at(w, step), &next, transfers)) >
           0) {
        for (int i = 0; i < count; i++) {
            bool gather = transfers[i].kind == TR_COMM_GATHER;
            *(gather ? &result->gather_bytes : &result->reduce_bytes) +=
                tr__transfer_sent(w->plan, &transfers[i]);
            add_job(w, step, tr__transfer_seconds(&w->share, &transfers[i]));
        }
    }
}

// ---- computing
// -----------------------------------------------------------------------

static void compute(walk *w, double seconds) {
    double taken = w->share.machine->interference, left = seconds;
    while (left > 0 && w->count > 0) {
        job *front = &w->queue[w->first];
        double both = left < front->left ? left : front->left;
        double slowed = both * taken / (1 - taken);
        w->now += both + slowed;
        w->out->result.slowed_seconds += slowed;
        left -= both;
        front->left -= both;
        if (front->left <= 0) {
            finish_job(w);
        }
    }
    w->now += left;
    w->out->result.compute_seconds += seconds;
}

// Most steps of a kind run the same program as the last.
static double seconds_of(walk *w, const tr_plan_step *step) {
    const tr_program *program = tr__step_program(w->plan, step, TR_SEQUENCE_TRAIN);
    if (!program) {
        return tr__step_seconds(&w->share, w->plan, step);
    }
    if (w->known[step->kind].program != program) {
        w->known[step->kind].program = program;
        w->known[step->kind].seconds = tr__program_seconds(&w->share, program);
    }
    return w->known[step->kind].seconds;
}

static void count_flops(walk *w, const tr_plan_step *step) {
    const tr_program *program = tr__step_program(w->plan, step, TR_SEQUENCE_TRAIN);
    double flops = program ? program->cost.flops : 0;
    w->out->result.flops += flops;
    w->out->result.model_flops += step->kind == TR_STEP_recompute ? 0 : flops;
}

// ---- the walk
// ------------------------------------------------------------------------

static void run_step(walk *w, int32_t index) {
    const tr_plan_step *step = step_at(w, index);
    w->out->kind_steps[step->kind]++;
    while (w->done < step->wait && w->count > 0) {
        wait_for_front(w);
    }
    if (step->stream == TR_STREAM_COMM) {
        start_transfers(w, index);
        return;
    }
    double begin = w->now;
    if (step->kind == TR_STEP_combine) { // waits for what it starts
        start_transfers(w, index);
        while (w->count > 0) {
            wait_for_front(w);
        }
        return;
    }
    compute(w, seconds_of(w, step));
    count_flops(w, step);
    w->out->kind_seconds[step->kind] += w->now - begin;
    add_span(w, index, step->stream, begin);
}

// The update begins when all ranks know the norm; the step is over when nothing moves.
static void run_all(walk *w) {
    size_t count = w->plan->sequences[TR_SEQUENCE_TRAIN].count;
    for (size_t i = 0; i <= count && w->status == TR_OK; i++) {
        if (i == w->plan->update_begin || i == count) {
            while (w->count > 0) {
                wait_for_front(w);
            }
        }
        if (i < count) {
            run_step(w, (int32_t)i);
        }
    }
}

static void conclude(const walk *w) {
    const tr_plan_request *request = &w->plan->request;
    const tr_machine *machine = w->share.machine;
    tr_simulation *r = &w->out->result;
    double possible = machine->flops * w->share.part * w->now;
    r->seconds = w->now;
    r->samples_per_second = (double)request->train_batch_size / w->now;
    r->tokens_per_second =
        r->samples_per_second * (double)tr_model_targets(request->model);
    r->utilisation = r->flops / possible;
    r->model_utilisation = r->model_flops / possible;
    for (int s = 0; s < TR_SPACES; s++) {
        bool own = s == TR_SPACE_DEVICE && !machine->shared;
        r->planned_bytes[s] = w->plan->ledger.total[s];
        r->machine_bytes[s] = machine->capacity[s] / (own ? 1 : w->share.sharers);
    }
}

static tr_status check_ways(const tr_share *share, tr_error *err) {
    bool inside = share->sharers > 1, between = share->ranks > share->sharers;
    tr_way missing = inside && share->machine->way[TR_WAY_INSIDE].rate == 0
                         ? TR_WAY_INSIDE
                         : TR_WAY_BETWEEN;
    bool misses = missing == TR_WAY_INSIDE ||
                  (between && share->machine->way[TR_WAY_BETWEEN].rate == 0);
    return misses ? tr_fail(err, TR_USAGE,
                            "machine %.200s: %lld ranks, %lld on a node, need "
                            "link.%s.bytes, which is not there",
                            share->machine->name, (long long)share->ranks,
                            (long long)share->machine->ranks_per_node,
                            missing == TR_WAY_INSIDE ? "inside" : "between")
                  : TR_OK;
}

tr_status tr_simulate(const tr_plan *plan, const tr_machine *machine,
                      tr_simulated **out, tr_error *err) {
    if (plan->request.inference) {
        return tr_fail(err, TR_USAGE, "only a training step can be simulated");
    }
    if (plan->request.optimizer_home != TR_SPACE_DEVICE) {
        return tr_fail(err, TR_USAGE,
                       "offload (zero_optimization.offload_optimizer) is not yet "
                       "simulated");
    }
    walk *w = tr__calloc(1, sizeof *w);
    tr_simulated *simulated = tr__calloc(1, sizeof *simulated);
    tr_status status = TR_OK;
    if (!w || !simulated) {
        status = tr_fail(err, TR_MEMORY, "no memory for a simulation");
        goto cleanup;
    }
    *simulated = (tr_simulated){.plan = plan, .machine = machine};
    *w = (walk){.out = simulated, .plan = plan, .err = err};
    w->share = tr__machine_share(machine, plan->request.ranks,
                                 plan->ledger.total[TR_SPACE_DEVICE]);
    status = check_ways(&w->share, err);
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
    return &simulated->result;
}
