// On which device the run computes: the one that its file names, or, where the file
// leaves it open, the first of this machine that can train it.
#include "backend/backend.h"
#include "plan/plan.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_MOST = 1023 }; // of a device

// "cuda", "cuda:1"
tr_status tr__run_resolve_device(tr_run *run, tr_error *err) {
    const char *said = tr__config_text(run->config, "device");
    if (tr__config_is_auto(run->config, "device")) {
        return TR_OK;
    }
    char name[32] = "";
    size_t length = strcspn(said, ":");
    strncat(name, said, length < sizeof name ? length : sizeof name - 1);
    run->request.backend = tr__backend_find(name);
    if (said[length] == '\0') {
        return TR_OK;
    }
    long number = strtol(said + length + 1, NULL, 10);
    if (run->request.backend == TR_BACKEND_HOST) {
        return tr_fail(err, TR_USAGE,
                       "device is \"%s\": the processor has no number; set device to "
                       "\"%s\"",
                       said, name);
    }
    if (number > NUMBER_MOST) {
        return tr_fail(err, TR_USAGE, "device is \"%s\": numbers go up to %d", said,
                       NUMBER_MOST);
    }
    run->request.device = (int)number;
    return TR_OK;
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

static bool choose(tr_run *run, tr_backend_id id) {
    const tr_backend *backend = tr__backend(id);
    tr_device device;
    tr_error why = {0};
    char name[32];
    if (!tr__backend_has(backend, 0, &device)) {
        return false;
    }
    tr__device_print(id, 0, name, sizeof name);
    run->request.backend = id;
    bool can = can_train(run, &why) == TR_OK;
    if (can) {
        tr__note(&run->log,
                 "device %s (%s); \"device\": \"cpu\" trains on the processor instead",
                 name, device.name);
    } else {
        run->request.backend = TR_BACKEND_HOST;
        tr__note(&run->log, "device cpu: %s (%s) cannot train this run: %s", name,
                 device.name, why.message);
    }
    return can;
}

void tr__run_choose_device(tr_run *run, const tr_run_options *options) {
    bool open = tr__config_is_auto(run->config, "device") && !options->machine;
    if (open && options->choose_device) {
        bool chosen = false;
        for (int id = 0; id < TR_BACKEND_COUNT && !chosen; id++) {
            chosen = choose(run, (tr_backend_id)id);
        }
    }
}
