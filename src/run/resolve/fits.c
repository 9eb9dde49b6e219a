// Does a plan fit into the memory of this machine? If not, which micro-batch would fit.
#include "backend/backend.h"
#include "base/checked.h"
#include "base/machine.h"
#include "base/text.h"
#include "plan/flow/request.h"
#include "run/run.h"

#include <stdio.h>

enum { TRIED_MICROS_MAX = 4096 }; // of a plan that is made only to see what it takes

static bool has_own_memory(const tr_plan_request *r) {
    return tr__backend(r->backend)->device != NULL;
}

static int64_t process_bytes(const tr_plan *plan, const int64_t bytes[TR_SPACES]) {
    bool apart = has_own_memory(&plan->request);
    return (apart ? 0 : bytes[TR_SPACE_DEVICE]) + bytes[TR_SPACE_HOST] +
           tr__request_process(&plan->request);
}

int64_t tr__run_process_bytes(const tr_plan *plan) {
    return process_bytes(plan, tr_plan_ledger(plan)->total);
}

// Bytes by space of the stage of a pipeline that takes most; of the plan's rank, where
// there is one stage.
static const int64_t *fullest_stage(const tr_plan *plan) {
    const int64_t *most = tr_plan_ledger(plan)->total;
    int64_t stages = plan->stages ? plan->request.mesh.size[TR_AXIS_PIPELINE] : 0;
    for (int64_t s = 0; s < stages; s++) {
        const int64_t *bytes = plan->stages[s].bytes;
        bool more = bytes[TR_SPACE_DEVICE] + bytes[TR_SPACE_HOST] >
                    most[TR_SPACE_DEVICE] + most[TR_SPACE_HOST];
        most = more ? bytes : most;
    }
    return most;
}

// What this process takes of a device beside the plan.
static int64_t taken_beside(const tr_run *run) {
    const tr_peer_table *peers = tr__backend(run->request.backend)->peers;
    return TR_DEVICE_BESIDE + (run->request.peers ? peers->beside : 0);
}

int64_t tr__run_device_memory(const tr_run *run, const tr_device *device) {
    return device->memory / run->sharers - taken_beside(run);
}

// "", or " for each of the 4 ranks on it".
static void print_sharing(int ranks, char *text, size_t size) {
    text[0] = '\0';
    if (ranks > 1) {
        snprintf(text, size, " for each of the %d ranks on it", ranks);
    }
}

// Into that of the device, if it is here.
static tr_status fits_device(const tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    int64_t bytes = tr__round_up(fullest_stage(plan)[TR_SPACE_DEVICE], TR_DEVICE_PAGE);
    char want[32], have[32], beside[32], name[32], sharing[64];
    tr_device device;
    if (!tr__backend_has(tr__backend(r->backend), r->device, &device) ||
        bytes <= tr__run_device_memory(run, &device)) {
        return TR_OK;
    }
    tr__print_size(want, sizeof want, bytes);
    tr__print_size(beside, sizeof beside, taken_beside(run));
    tr__print_size(have, sizeof have, device.memory / run->sharers);
    print_sharing(run->sharers, sharing, sizeof sharing);
    tr__device_print(r->backend, r->device, name, sizeof name);
    return tr_fail(err, TR_BUDGET,
                   "the plan needs %s of the device's memory, and about %s beside "
                   "it; %s has %s%s: lower train_micro_batch_size_per_gpu, set "
                   "activation_checkpointing.number_checkpoints, or have \"memory\": "
                   "\"auto\" choose a plan that fits",
                   want, beside, name, have, sharing);
}

// The largest halving of the micro-batch that fits; 0: none, or none that is tried.
static int64_t smaller_micro(const tr_plan_request *request, int64_t memory,
                             int64_t *bytes) {
    tr_plan_request tried = *request;
    while (tried.micro_batch > 1) {
        tr_plan *plan = NULL;
        tried.micro_batch /= 2;
        tried.accumulation_steps = tr__ceil_div(
            request->train_batch_size, tried.micro_batch * tr__data_ranks(&tried));
        if (tried.accumulation_steps > TRIED_MICROS_MAX ||
            tr_plan_make(&tried, &plan, NULL) != TR_OK) {
            return 0;
        }
        *bytes = process_bytes(plan, fullest_stage(plan));
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

tr_status tr__run_fits(const tr_run *run, const tr_plan *plan, tr_error *err) {
    int64_t memory = share_of_memory(run), bytes = 0;
    int64_t needed = process_bytes(plan, fullest_stage(plan));
    tr_status status = fits_device(run, plan, err);
    if (status != TR_OK) {
        return status;
    }
    if (memory == 0 || needed <= memory) {
        return TR_OK;
    }
    char want[32], have[32], less[32], sharing[64];
    int64_t micro = smaller_micro(&run->request, memory, &bytes);
    tr__print_size(want, sizeof want, needed);
    tr__print_size(have, sizeof have, memory);
    tr__print_size(less, sizeof less, bytes);
    print_sharing(run->comm ? tr__comm_local_ranks(run->comm) : 1, sharing,
                  sizeof sharing);
    if (micro > 0) {
        return tr_fail(err, TR_BUDGET,
                       "the plan needs %s of memory, this machine has %s%s; with "
                       "train_micro_batch_size_per_gpu %lld in place of %lld it would "
                       "need %s; \"memory\": \"auto\" chooses a plan that fits",
                       want, have, sharing, (long long)micro,
                       (long long)run->request.micro_batch, less);
    }
    return tr_fail(err, TR_BUDGET,
                   "the plan needs %s of memory, this machine has %s%s: lower "
                   "train_micro_batch_size_per_gpu, set "
                   "activation_checkpointing.number_checkpoints, have \"memory\": "
                   "\"auto\" choose a plan that fits, or choose a smaller model",
                   want, have, sharing);
}
