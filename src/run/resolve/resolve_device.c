// On which device the run computes: the one that its file names, or, where the file
// leaves it open, one of this machine that can train it. Ranks of a machine that has
// several take them in turn.
#include "backend/backend.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

tr_status tr__run_resolve_device(tr_run *run, tr_error *err) {
    const char *way = tr__config_text(run->config, "execution.exchange");
    run->settings.exchange = tr__config_is_auto(run->config, "execution.exchange")
                                 ? TR_WAY_OPEN
                             : strcmp(way, "nccl") == 0 ? TR_WAY_PEERS
                                                        : TR_WAY_HOST;
    return tr__config_is_auto(run->config, "device")
               ? TR_OK
               : tr__device_parse("device", tr__config_text(run->config, "device"),
                                  &run->request.backend, &run->request.device, err);
}

tr_status tr__run_device_is_here(const tr_run *run, tr_error *err) {
    const tr_backend *backend = tr__backend(run->request.backend);
    tr_device device;
    tr_error why = {0};
    if (tr__config_is_auto(run->config, "device") || !backend->device ||
        backend->device(run->request.device, &device, &why) == TR_OK) {
        return TR_OK;
    }
    return tr_fail(err, why.status,
                   "device is \"%s\", but %s; set device to \"cpu\", or leave it out "
                   "to compute on what there is",
                   tr__config_text(run->config, "device"), why.message);
}

tr_status tr__run_check_updates(const tr_run *run, const tr_optimizer *optimizer,
                                tr_error *err) {
    const tr_plan_request *r = &run->request;
    const tr_backend *backend = tr__backend(r->backend);
    bool by_host = r->optimizer_placement != TR_SPACE_DEVICE && r->optimizer_stays == 0;
    return by_host || !backend->updates || backend->updates(optimizer)
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "optimizer.type \"%s\": the %s backend cannot update by it "
                         "yet: choose another, have "
                         "zero_optimization.offload_optimizer.device \"cpu\" update on "
                         "the host, or set device to \"cpu\"",
                         tr__config_text(run->config, "optimizer.type"), backend->name);
}

// Has the backend kernels for the run, and its device room?
static tr_status can_train(const tr_run *run, tr_error *err) {
    tr_plan *plan = NULL;
    tr_status status = tr__run_check_updates(run, run->settings.optimizer, err);
    if (status == TR_OK) {
        status = tr_plan_make(&run->request, &plan, err);
    }
    if (status == TR_OK) {
        status = tr__run_fits(run, plan, err);
    }
    tr_plan_destroy(plan);
    return status;
}

// ---- of several ranks

// Do all ranks say so? Collective.
static tr_status all_say(tr_comm *comm, bool *said, tr_error *err) {
    int64_t most = !*said;
    tr_status status = TR_OK;
    if (tr__comm_count(comm) > 1) {
        status = tr_comm_most(comm, !*said, &most, err);
    }
    *said = most == 0;
    return status;
}

// Counts the ranks on the device of that identity, of which this is one. Collective.
static tr_status count_sharers(tr_run *run, uint64_t id, tr_error *err) {
    int ranks = tr__comm_count(run->comm);
    uint64_t *all = NULL;
    tr_error mine = {0};
    tr_status status = TR_OK;
    run->sharers = 1;
    if (ranks == 1) {
        return TR_OK;
    }
    all = tr__calloc((size_t)ranks, sizeof *all);
    status =
        all ? TR_OK : tr_fail(&mine, TR_MEMORY, "no memory for the ranks' devices");
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK) {
        status = tr__comm_all_gather(run->comm, &id, sizeof id, all, err);
    }
    for (int r = 0; r < ranks && status == TR_OK && id != 0; r++) {
        run->sharers += r != tr_comm_rank(run->comm) && all[r] == id;
    }
    tr__free(all);
    return status;
}

// Why the rank's device cannot exchange with others by itself; NULL: it can.
static const char *why_not_peers(const tr_run *run) {
    const tr_peer_table *peers = tr__backend(run->request.backend)->peers;
    if (!peers) {
        return "only GPUs exchange so";
    }
    if (!tr__comm_looks_beside(run->comm)) {
        return "the ranks exchange by functions of the program's, as those of torchrun "
               "do, and none of these would tell that another rank has ended";
    }
    return run->sharers > 1 ? "several ranks are on one GPU" : peers->missing();
}

// Do the ranks' devices exchange by themselves? Where that is left open, if all can.
// Collective.
static tr_status choose_exchange(tr_run *run, tr_error *err) {
    tr_exchange_way way = run->settings.exchange;
    tr_error mine = {0};
    run->request.peers = false;
    if (tr__comm_count(run->comm) == 1 || way == TR_WAY_HOST) {
        return TR_OK;
    }
    const char *why = why_not_peers(run);
    bool all = !why;
    if (way == TR_WAY_PEERS && why) {
        tr_fail(
            &mine, TR_USAGE,
            "execution.exchange is \"nccl\", but %s: leave the key out, or set it to "
            "\"host\"",
            why);
    }
    tr_status status = tr__agree(run->comm, mine.status, &mine, err);
    if (status == TR_OK) {
        status = all_say(run->comm, &all, err);
    }
    run->request.peers = all;
    return status;
}

// Takes the device that the file names, or the one whose turn it is. Collective.
static tr_status take_device(tr_run *run, tr_error *err) {
    const tr_backend *backend = tr__backend(run->request.backend);
    bool numbered = !tr__config_is_auto(run->config, "device") &&
                    strchr(tr__config_text(run->config, "device"), ':');
    int count = tr__backend_devices(backend);
    tr_device device = {.id = 0};
    if (!numbered && count > 0 && run->comm) {
        run->request.device = tr__comm_local_rank(run->comm) % count;
    }
    tr__backend_has(backend, run->request.device, &device);
    tr_status status = count_sharers(run, device.id, err);
    return status == TR_OK ? choose_exchange(run, err) : status;
}

// ---- where the file leaves it open

// " on rank 0, and 3 other ranks in turn"; "": there are none.
static void print_others(const tr_run *run, char *text, size_t size) {
    int others = tr__comm_count(run->comm) - 1;
    text[0] = '\0';
    if (others > 0) {
        snprintf(text, size, " on rank 0, and %d other rank%s in turn", others,
                 tr__plural(others));
    }
}

// *chosen: all ranks can train on it. Collective.
static tr_status try_device(tr_run *run, bool *chosen, tr_error *err) {
    const tr_backend *backend = tr__backend(run->request.backend);
    tr_error mine = {0}, why = {0};
    tr_device device = {.id = 0};
    char name[32], others[64];
    tr_status status = take_device(run, err);
    if (status != TR_OK) {
        return status;
    }
    status = can_train(run, &mine);
    *chosen = tr__agree(run->comm, status, &mine, &why) == TR_OK;
    tr__backend_has(backend, run->request.device, &device);
    tr__device_print(run->request.backend, run->request.device, name, sizeof name);
    print_others(run, others, sizeof others);
    if (*chosen) {
        tr__note(
            &run->log,
            "device %s (%s)%s; \"device\": \"cpu\" trains on the processor instead",
            name, device.name, others);
    } else {
        tr__note(&run->log, "device cpu: %s (%s) cannot train this run: %s", name,
                 device.name, why.message);
    }
    return TR_OK;
}

static tr_status choose(tr_run *run, tr_backend_id id, bool *chosen, tr_error *err) {
    tr_device device;
    *chosen = tr__backend_has(tr__backend(id), 0, &device);
    tr_status status = all_say(run->comm, chosen, err);
    if (status == TR_OK && *chosen) {
        run->request.backend = id;
        status = try_device(run, chosen, err);
    }
    if (!*chosen) {
        run->request.backend = TR_BACKEND_HOST;
        run->request.device = 0;
        run->request.peers = false;
        run->sharers = 1;
    }
    return status;
}

tr_status tr__run_choose_device(tr_run *run, tr_error *err) {
    bool open = tr__config_is_auto(run->config, "device"), chosen = false;
    tr_status status = TR_OK;
    if (run->given.parts.machine) {
        return TR_OK;
    }
    if (!open) {
        return take_device(run, err);
    }
    for (int id = 0; id < TR_BACKEND_COUNT && !chosen && run->settings.choose_device &&
                     status == TR_OK;
         id++) {
        status = choose(run, (tr_backend_id)id, &chosen, err);
    }
    return status;
}
