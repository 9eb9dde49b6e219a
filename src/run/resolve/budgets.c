// What plans may take of each memory: what the run file says, and what the machine has.
#include "backend/backend.h"
#include "base/checked.h"
#include "base/machine.h"
#include "base/text.h"
#include "run/run.h"
#include "sim/machine.h"

#include <tranche/extend/planner.h>

#include <stdio.h>

enum { TOTAL = TR_ROOM_TOTAL, KEYS };

static const char *const keys[KEYS] = {"memory.device", "memory.host",
                                       "memory.nvme.bytes", "memory.total"};

static bool is_given(const tr_run *run, int key) {
    return tr__config_is_said(run->config, keys[key]);
}

bool tr__run_has_budget(const tr_run *run) {
    bool has = false;
    for (int i = 0; i < KEYS; i++) {
        has = has || tr__config_is_given(run->config, keys[i]);
    }
    return has;
}

// ---- what there is

// What a machine of a file has for one rank.
static int64_t capacity(const tr_machine *machine, const tr_plan_request *r,
                        tr_space space) {
    bool shared = space != TR_SPACE_DEVICE || machine->shared;
    int64_t sharers = tr__min_i64(tr_mesh_ranks(&r->mesh), machine->ranks_per_node);
    int64_t bytes = machine->capacity[space];
    return bytes == 0 ? TR_UNLIMITED : shared ? bytes / sharers : bytes;
}

static tr_room room_of_file(const tr_run *run, const tr_machine *machine) {
    tr_room there = {.one_pool = machine->host_is_device};
    for (int s = 0; s < TR_SPACES; s++) {
        there.bytes[s] = capacity(machine, &run->request, (tr_space)s);
    }
    int64_t device = there.bytes[TR_SPACE_DEVICE], host = there.bytes[TR_SPACE_HOST];
    if (!tr__add_i64(device, host, &there.bytes[TOTAL])) {
        there.bytes[TOTAL] = TR_UNLIMITED;
    }
    return there;
}

// The device may have memory of its own. One that is not here is not known.
static tr_room room_here(const tr_run *run) {
    const tr_plan_request *r = &run->request;
    const tr_backend *backend = tr__backend(r->backend);
    int64_t memory = tr__machine_memory();
    int64_t share = memory / (run->comm ? tr__comm_local_ranks(run->comm) : 1);
    tr_device device;
    tr_room here = {.one_pool = !backend->device};
    for (int i = 0; i < KEYS; i++) {
        here.bytes[i] = TR_UNLIMITED;
    }
    here.bytes[TR_SPACE_NVME] = run->disk_room;
    if (here.one_pool && memory > 0) {
        here.bytes[TOTAL] = share;
    } else if (tr__backend_has(backend, r->device, &device)) {
        here.bytes[TR_SPACE_DEVICE] = tr__run_device_memory(run, &device);
        here.bytes[TR_SPACE_HOST] = memory > 0 ? share : TR_UNLIMITED;
    }
    return here;
}

tr_room tr__run_room(const tr_run *run, const tr_machine *machine) {
    return machine ? room_of_file(run, machine) : room_here(run);
}

// ---- budgets

// disk: the folder of a budget that its disk limits, NULL: another one.
static void say_less(const tr_run *run, const char *key, const char *disk,
                     int64_t asked, int64_t most) {
    char is[32], has[32];
    tr__print_size(is, sizeof is, asked);
    tr__print_size(has, sizeof has, most);
    if (disk) {
        tr__warn(&run->log,
                 "%s is %s, but the disk of %s has %s free: the plan is for %s", key,
                 is, disk, has, has);
    } else {
        tr__warn(&run->log, "%s is %s, but the machine has %s: the plan is for %s", key,
                 is, has, has);
    }
}

// What the file gives, but no more than there is.
static int64_t budget_of(const tr_run *run, int key, const tr_room *there, bool say) {
    bool of_pool = there->one_pool && key < TR_SPACE_NVME;
    int64_t most =
        tr__min_i64(there->bytes[key], of_pool ? there->bytes[TOTAL] : TR_UNLIMITED);
    int64_t bytes = tr__config_size(run->config, keys[key]);
    if (!is_given(run, key)) {
        return there->bytes[key];
    }
    if (bytes > most && say) {
        bool disk = key == TR_SPACE_NVME && most == run->disk_room;
        say_less(run, keys[key], disk ? tr__run_nvme_folder(run) : NULL, bytes, most);
    }
    return tr__min_i64(bytes, most);
}

// Where device and host are one memory, a budget of the device alone does not limit the
// process.
static void say_one_pool(const tr_run *run, const tr_room *there) {
    if (there->one_pool && is_given(run, TR_SPACE_DEVICE) &&
        !is_given(run, TR_SPACE_HOST) && !is_given(run, TOTAL)) {
        tr__note(&run->log,
                 "memory.device limits only what the plan keeps on the device. This "
                 "machine has one memory for device and host, so what the plan keeps "
                 "on the host takes more of it. memory.total limits the whole process");
    }
}

void tr__run_set_budgets(const tr_run *run, const tr_machine *machine, bool say,
                         tr_planner_request *request) {
    tr_room there = tr__run_room(run, machine);
    for (int s = 0; s < TR_SPACES; s++) {
        request->budget[s] = budget_of(run, s, &there, say);
    }
    if (!tr__run_nvme_folder(run)) {
        request->budget[TR_SPACE_NVME] = 0;
    }
    // "auto" is the machine's memory, of which there are two where the device is apart.
    request->total = there.one_pool ? tr__config_is_given(run->config, keys[TOTAL])
                                    : is_given(run, TOTAL);
    request->together = request->total || (there.one_pool && !machine)
                            ? budget_of(run, TOTAL, &there, say)
                            : TR_UNLIMITED;
    if (say) {
        say_one_pool(run, &there);
    }
}
