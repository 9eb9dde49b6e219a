// A machine that nobody has measured.
#include "backend/backend.h"
#include "base/checked.h"
#include "base/memory.h"
#include "calibrate/calibrate.h"
#include "plan/flow/plan.h"
#include "plan/flow/request.h"

// Of one thread, or one multiprocessor of a GPU: memory as servers have it. Copies
// within the host's memory, and to a device over PCIe 4.0.
static const double memory = 10e9, copies = 8e9, bus = 25e9, link = 3e9, disk = 1e9;
static const double launch = 2e-6, message = 2e-5, block = 1e-4;

static void set_way(tr_machine *m, tr_way way, double rate, double latency) {
    m->way[way].rate = rate;
    m->way[way].latency = latency;
}

tr_status tr__calibrate_nominal(const tr_plan_request *request, tr_machine **out,
                                tr_error *err) {
    tr_machine *m = tr__calloc(1, sizeof *m);
    if (m) {
        m->name = tr__strdup("a usual machine, not measured");
    }
    if (!m || !m->name) {
        tr_machine_close(m);
        return tr_fail(err, TR_MEMORY, "no memory for a machine");
    }
    tr_target target = tr__request_target(request);
    m->ranks_per_node = tr__max_i64(1, tr_mesh_ranks(&request->mesh));
    m->flops = tr__backend(target.backend)->usual_rate(target.level, target.workers);
    m->half_flops = m->fp8_flops = m->flops;
    m->memory_rate = memory * target.workers;
    bool discrete = tr__backend(target.backend)->discrete;
    int host_workers = tr__request_host(request).workers;
    double copied = discrete ? bus : copies;
    m->host_rate = memory * host_workers * (double)m->ranks_per_node;
    m->host_is_device = !discrete;
    m->launch = launch;
    for (int i = 0; i < TR_RATED_OPS; i++) {
        m->op_launch[i] = -1;
    }
    set_way(m, TR_WAY_INSIDE, link, message);
    set_way(m, TR_WAY_BETWEEN, link, message);
    set_way(m, TR_WAY_TO_DEVICE, copied, launch);
    set_way(m, TR_WAY_TO_HOST, copied, launch);
    set_way(m, TR_WAY_NVME_READ, disk, block);
    set_way(m, TR_WAY_NVME_WRITE, disk, block);
    m->link_interference = m->copy_interference = 0.5;
    m->nvme_interference = 0.1;
    *out = m;
    return TR_OK;
}
