// What a rank computes with: the kernels that a machine file asks for, and so many
// threads; where both leave it open, by the size of the work, up to its cores.
#include "backend/backend.h"
#include "comm/alone.h"
#include "files/checkpoint/state.h"
#include "plan/threads.h"
#include "run/run.h"
#include "sim/machine.h"

#include <stdlib.h>

static const char key[] = "execution.threads";
static const char kept_threads[] = "threads", kept_cores[] = "threads_cores";

// Sums that are reproducible over all cuts of the batch have a fixed number of threads,
// and a machine of a file has what the file says.
static bool is_open(const tr_run *run) {
    bool said =
        tr__config_is_given(run->config, key) && !tr__config_is_auto(run->config, key);
    return !said && !getenv("OMP_NUM_THREADS") && !run->given.parts.machine &&
           !run->request.reproducible;
}

static int cores_of(const tr_run *run) {
    return run->comm ? tr_comm_threads(run->comm)
                     : tr__backend(TR_BACKEND_HOST)->here(0).workers;
}

// A plan asks its kernels what they need; so they have to be able to run here.
tr_status tr__run_resolve_target(tr_run *run, const tr_machine *machine,
                                 tr_error *err) {
    tr_plan_request *r = &run->request;
    const tr_backend *backend = tr__backend(machine->backend);
    tr_target here = backend->here(0);
    if (machine->level_limit > here.level + 1) {
        return tr_fail(err, TR_USAGE,
                       "the machine file's target.level is %s, but this machine can "
                       "run and plan kernels up to %s: leave the key out",
                       backend->level_name(machine->level_limit - 1),
                       tr__target_name(&here));
    }
    bool chosen = !tr__config_is_auto(run->config, "device");
    if (chosen && machine->says_backend && r->backend != machine->backend) {
        return tr_fail(err, TR_USAGE,
                       "device is \"%s\", but the machine file's target.backend is "
                       "\"%s\": leave one of them out",
                       tr__backend(r->backend)->name, backend->name);
    }
    r->backend = chosen ? r->backend : machine->backend;
    r->elsewhere = true;
    r->level_limit = machine->level_limit;
    if (machine->workers > 0 && tr__config_is_auto(run->config, key)) {
        r->threads = machine->workers;
    }
    return TR_OK;
}

// That of the checkpoint which the run resumes from, so that it goes on with the same
// bits; on a machine with as many cores. Checkpoints that do not tell had all cores.
static int find_kept(const tr_run *run, int cores) {
    tr_state state;
    double threads = cores, then = cores;
    if (!tr__run_find_kept(run, &state)) {
        return 0;
    }
    tr__state_numbers_get(&state.numbers, kept_threads, &threads);
    tr__state_numbers_get(&state.numbers, kept_cores, &then);
    return (int)then == cores && threads <= cores ? (int)threads : 0;
}

static tr_status choose(tr_run *run, int cores, int *threads, tr_error *err) {
    int kept = find_kept(run, cores);
    tr_status status = TR_OK;
    *threads = kept;
    if (kept == 0) {
        status = tr__threads_that_pay(&run->request, cores, threads, err);
    }
    if (status == TR_OK && *threads < cores) {
        tr__note(&run->log, "threads: %d of %d%s", *threads, cores,
                 kept > 0 ? ", as in the checkpoint"
                          : ": more threads make work of this size no faster");
    }
    return status;
}

tr_status tr__run_resolve_threads(tr_run *run, tr_error *err) {
    tr_error mine = {0};
    tr_status status = TR_OK;
    int threads = run->request.threads, cores = cores_of(run);
    if (tr__comm_leads(run->comm) && is_open(run)) {
        status = choose(run, cores, &threads, &mine);
    }
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK && tr__comm_count(run->comm) > 1) {
        // Files that differ among ranks are told of later: here rank 0's counts.
        int64_t all[2] = {threads, is_open(run)};
        status = tr__comm_broadcast(run->comm, 0, all, sizeof all, err);
        threads = all[1] ? (int)all[0] : threads;
    }
    run->request.threads = threads;
    return status;
}

void tr__run_keep_threads(const tr_run *run, int threads, tr_state_numbers *numbers) {
    tr__state_numbers_set(numbers, kept_threads, threads);
    tr__state_numbers_set(numbers, kept_cores, cores_of(run));
}
