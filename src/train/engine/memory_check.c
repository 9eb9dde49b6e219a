// Is there memory for a plan?
#include "backend/backend.h"
#include "base/arguments.h"
#include "base/checked.h"
#include "base/machine.h"
#include "base/text.h"
#include "plan/flow/request.h"

static tr_status check(const char *what, int64_t needs, int64_t memory,
                       const char *whose, tr_error *err) {
    char want[32], have[32];
    if (memory == 0 || needs <= memory) {
        return TR_OK;
    }
    tr__print_size(want, sizeof want, needs);
    tr__print_size(have, sizeof have, memory);
    return tr_fail(err, TR_BUDGET, "%s needs %s of memory, %s has %s", what, want,
                   whose, have);
}

tr_status tr_plan_check_memory(const tr_plan *plan, const char *what, tr_error *err) {
    static const char own_name[] = "tr_plan_check_memory";
    tr_status given = tr__need(plan, own_name, "plan", err);
    given = given == TR_OK ? tr__need(what, own_name, "what", err) : given;
    if (given != TR_OK) {
        return given;
    }
    const tr_ledger *ledger = tr_plan_ledger(plan);
    const tr_plan_request *r = &plan->request;
    const tr_backend *backend = tr__backend(r->backend);
    int64_t on_device = ledger->total[TR_SPACE_DEVICE];
    int64_t on_host = ledger->total[TR_SPACE_HOST] + tr__request_process(r);
    tr_device device;
    char name[32];
    if (!backend->device) {
        return check(what, on_device + on_host, tr__machine_memory(), "this machine",
                     err);
    }
    tr__device_print(r->backend, r->device, name, sizeof name);
    tr_status status =
        tr__backend_has(backend, r->device, &device)
            ? check(what, tr__round_up(on_device, TR_DEVICE_PAGE) + TR_DEVICE_BESIDE,
                    device.memory, name, err)
            : TR_OK;
    return status == TR_OK
               ? check(what, on_host, tr__machine_memory(), "this machine", err)
               : status;
}
