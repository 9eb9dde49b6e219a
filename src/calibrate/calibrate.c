#include "calibrate/calibrate.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/text.h"
#include "calibrate/measure.h"
#include "plan/flow/request.h"
#include "plan/passes/away.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 1024,            // targets of the larger micro-batch, at least
    LEAST_MEMORY = 4 << 20, // bytes that measuring takes
};

static const double usual_seconds = 4;

// ---- plans whose kernels are measured

// One rank's, with everything on the device. Two micro-batches, so that gradients are
// added to.
static tr_status plan_size(const tr_plan_request *request, int64_t micro_batch,
                           tr_plan **out, tr_error *err) {
    tr_plan_request r = *request;
    r.train_batch_size = 2 * micro_batch;
    r.micro_batch = micro_batch;
    r.accumulation_steps = 2;
    r.mesh = tr_mesh_of_data(1, 0);
    r.wave = 0;
    r.stage = 0;
    r.optimizer_placement = r.param_placement = r.grad_placement = TR_SPACE_DEVICE;
    r.update_elements = 0;
    r.update_slots = 0;
    r.recomputed_units = r.recomputed_ops_units = 0;
    r.recomputed_ops = TR_RECOMPUTE_DEFAULT;
    tr__request_nothing_away(&r);
    r.no_overlap = r.reproducible = r.inference = false;
    r.sums = TR_NONE;
    r.measure = TR_MEASURE_NEVER;
    r.host_data_bytes = 0;
    return tr_plan_make(&r, out, err);
}

// One sample, and as many as make products large; no more than a rank has of a batch.
static tr_status make_plans(tr_measuring *m, tr_plan *plans[TR_MEASURE_SIZES],
                            tr_error *err) {
    const tr_plan_request *r = m->request;
    int64_t targets = tr__max_i64(1, tr_model_targets(r->model)), large = 2;
    int64_t most =
        tr__ceil_div(tr__max_i64(1, r->train_batch_size), tr__data_ranks(m->request));
    while (large * targets < ROWS) {
        large *= 2;
    }
    large = tr__min_i64(large, most);
    tr_status status = plan_size(r, 1, &plans[0], err);
    if (status == TR_OK && large > 1) {
        status = plan_size(r, large, &plans[1], err);
    }
    m->plans[0] = plans[0];
    m->plans[1] = plans[1];
    m->plan_count = plans[1] ? 2 : 1;
    return status;
}

// ---- measuring

// Ranks that are not there exchange by copies, which share the cores with computing.
static void suppose_links(const tr_plan_request *request, tr_machine *machine) {
    bool several = tr_mesh_ranks(&request->mesh) > 1;
    for (int way = TR_WAY_INSIDE; way <= TR_WAY_BETWEEN && several; way++) {
        machine->way[way] = machine->way[TR_WAY_TO_HOST];
        machine->way[way].rate /= 2;
    }
    machine->link_interference = several ? 0.5 : 0;
}

static bool wants_nvme(const tr_calibration *how) {
    return how->nvme && how->nvme[0] != '\0';
}

static tr_status measure_all(tr_measuring *m, const tr_calibration *how) {
    tr_status status = tr__measure_memory(m);
    if (status == TR_OK) {
        const tr_target *target = &m->plans[0]->target;
        double measured = m->backend->measure_rate(m->request->threads);
        double usual = m->backend->usual_rate(target->level, target->workers);
        m->machine->flops = measured > 1 ? measured : usual > 1 ? usual : 1e9;
        status = tr__measure_kernels(m);
    }
    if (status == TR_OK) {
        status = tr__measure_spread(m);
    }
    if (status == TR_OK) {
        status = tr__measure_copies(m);
    }
    if (status == TR_OK && m->comm) {
        status = tr__measure_links(m);
    }
    if (status == TR_OK && !m->comm) {
        suppose_links(m->request, m->machine);
    }
    return status == TR_OK && wants_nvme(how) ? tr__measure_nvme(m, how->nvme) : status;
}

static void release(tr_measuring *m) {
    tr__arena_destroy(m->cold);
    tr__arena_destroy(m->warm);
    tr__arena_destroy(m->ids);
    m->cold = m->warm = m->ids = NULL;
}

static tr_status print_machine(const tr_machine *machine, char **text, tr_error *err) {
    static const char *const sources[] = {"measured here, with the model's kernels"};
    char *own = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&own, &bytes);
    tr_status status = to ? tr__machine_print(machine, sources, 1, to, err)
                          : tr_fail(err, TR_MEMORY, "no memory to calibrate");
    if (to && fclose(to) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory to calibrate");
    }
    *text = status == TR_OK ? tr__strdup(own) : NULL;
    free(own);
    return status == TR_OK && !*text ? tr_fail(err, TR_MEMORY, "no memory to calibrate")
                                     : status;
}

// ---- what was measured, as text, on all ranks

// Rank 0's text to all; *text NULL there: to all.
static tr_status share(tr_comm *comm, char **text, tr_error *err) {
    int64_t bytes = *text ? (int64_t)strlen(*text) + 1 : 0;
    tr_error mine = {0};
    tr_status status = TR_OK;
    if (!comm) {
        return TR_OK;
    }
    status = tr__comm_broadcast(comm, 0, &bytes, sizeof bytes, err);
    if (status != TR_OK || bytes == 0) {
        return status;
    }
    if (!tr__comm_leads(comm)) {
        *text = tr__calloc(1, (size_t)bytes);
    }
    if (!*text) {
        status = tr_fail(&mine, TR_MEMORY, "no memory to calibrate");
    }
    status = tr__agree(comm, status, &mine, err);
    return status == TR_OK ? tr__comm_broadcast(comm, 0, *text, (size_t)bytes, err)
                           : status;
}

static tr_status recall(tr_measuring *m, const tr_calibration *how,
                        const char *fingerprint, char **text) {
    if (tr__comm_leads(m->comm) && !how->again) {
        tr__calibration_read(how->cache, fingerprint, how->log, text);
    }
    return share(m->comm, text, m->err);
}

static tr_status measure_anew(tr_measuring *m, const tr_calibration *how,
                              const char *fingerprint, char **text) {
    tr_error mine = {0};
    tr__note(how->log,
             "measuring this machine with the model's kernels: about %.0f seconds",
             m->seconds);
    tr_status status = tr__measure_open(m, &mine);
    status = tr__agree(m->comm, status, &mine, m->err);
    if (status == TR_OK) {
        status = measure_all(m, how);
    }
    tr__measure_close(m);
    release(m);
    if (status == TR_OK) {
        status = tr__agree(m->comm, m->fault.status, &m->fault, m->err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (tr__comm_leads(m->comm)) {
        status = print_machine(m->machine, text, &mine);
    }
    status = tr__agree(m->comm, status, &mine, m->err);
    bool whole = !wants_nvme(how) || m->machine->way[TR_WAY_NVME_READ].rate > 0;
    if (status == TR_OK && whole && tr__comm_leads(m->comm)) {
        tr__calibration_write(how->cache, fingerprint, *text, how->log);
    }
    return status == TR_OK ? share(m->comm, text, m->err) : status;
}

// ---- all of it

static int64_t memory_of(const tr_calibration *how) {
    int64_t machine = tr__machine_memory();
    machine = machine > 0 ? machine / 8 : LEAST_MEMORY;
    return tr__max_i64(LEAST_MEMORY, how->memory > 0 ? how->memory : machine);
}

// Of a rank; a discrete device has its own beside the host's.
static void describe_memory(const tr_measuring *m, tr_machine *machine) {
    tr_device device;
    machine->capacity[TR_SPACE_DEVICE] = tr__machine_memory() / machine->ranks_per_node;
    if (tr__backend_has(m->backend, m->request->device, &device)) {
        machine->capacity[TR_SPACE_HOST] = tr__machine_memory();
        machine->capacity[TR_SPACE_DEVICE] = device.memory;
    }
}

static int ranks_on_node(const tr_measuring *m) {
    if (!m->comm) {
        return (int)tr_mesh_ranks(&m->request->mesh);
    }
    int near = tr__measure_near(m);
    return near > 0 ? near : tr__comm_local_ranks(m->comm);
}

static tr_status describe(tr_measuring *m, char **fingerprint, const char *nvme,
                          tr_error *err) {
    tr_machine *machine = m->machine;
    bool many = m->request->threads != 1;
    int ranks = ranks_on_node(m);
    for (int i = 0; i < TR_RATED_OPS; i++) {
        machine->op_launch[i] = -1;
    }
    machine->ranks_per_node = ranks;
    describe_memory(m, machine);
    machine->name = tr__format("this machine, %d rank%s of %d thread%s", ranks,
                               tr__plural(ranks), m->request->threads, many ? "s" : "");
    if (!machine->name) {
        return tr_fail(err, TR_MEMORY, "no memory to calibrate");
    }
    tr_status status = tr__calibration_fingerprint(m, nvme, fingerprint, err);
    if (status == TR_OK) {
        machine->fingerprint = tr__strdup(*fingerprint);
    }
    return status == TR_OK && !machine->fingerprint
               ? tr_fail(err, TR_MEMORY, "no memory to calibrate")
               : status;
}

static tr_status calibrate(const tr_plan_request *request, tr_comm *comm,
                           const tr_calibration *how, tr_machine **out, tr_error *err) {
    tr_plan_request resolved = *request;
    tr_plan *plans[TR_MEASURE_SIZES] = {NULL};
    tr_error mine = {0};
    char *text = NULL, *fingerprint = NULL;
    tr_measuring *m = tr__calloc(1, sizeof *m);
    tr_machine *machine = tr__calloc(1, sizeof *machine);
    tr_status status =
        m && machine ? TR_OK : tr_fail(&mine, TR_MEMORY, "no memory to calibrate");
    comm = comm && tr_comm_ranks(comm) > 1 ? comm : NULL;
    const tr_backend *backend = tr__backend(request->backend);
    resolved.threads = tr__request_target(request).workers;
    int before = backend->begin(resolved.threads);
    if (tr_mesh_ranks(&request->mesh) < 1) {
        resolved.mesh = tr_mesh_of_data(1, 0);
    }
    if (status == TR_OK) {
        *m = (tr_measuring){.comm = comm,
                            .request = &resolved,
                            .backend = backend,
                            .log = how->log,
                            .memory = memory_of(how),
                            .seconds = how->seconds > 0 ? how->seconds : usual_seconds,
                            .machine = machine,
                            .err = err};
        status = make_plans(m, plans, &mine);
    }
    if (status == TR_OK) {
        status = describe(m, &fingerprint, how->nvme, &mine);
    }
    status = tr__agree(comm, status, &mine, err);
    if (status == TR_OK) {
        status = recall(m, how, fingerprint, &text);
    }
    if (status == TR_OK && !text && !how->known_only) {
        status = measure_anew(m, how, fingerprint, &text);
    }
    *out = NULL;
    if (status == TR_OK && text) {
        status = tr__machine_parse("calibration", text, out, err);
    }
    backend->end(before);
    tr_plan_destroy(plans[0]);
    tr_plan_destroy(plans[1]);
    tr_machine_close(machine);
    tr__free(m);
    tr__free(text);
    tr__free(fingerprint);
    return status;
}

// A plan can be made for a device that this machine has not.
static bool is_here(const tr_plan_request *request) {
    const tr_backend *backend = tr__backend(request->backend);
    tr_device ignored;
    return !backend->device || tr__backend_has(backend, request->device, &ignored);
}

tr_status tr__calibrate(const tr_plan_request *request, tr_comm *comm,
                        const tr_calibration *how, tr_machine **out, tr_error *err) {
    if (is_here(request)) {
        return calibrate(request, comm, how, out, err);
    }
    *out = NULL;
    return how->known_only ? TR_OK : tr__calibrate_nominal(request, out, err);
}
