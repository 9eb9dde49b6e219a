// How long the run will take, before its first step: by a machine that is known, which
// is the caller's or this one as it was measured before. Nothing is measured for it.
#include "calibrate/calibrate.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"
#include "run/run.h"

// *own: to be closed. Both NULL: no machine is known. Collective.
static tr_status find_machine(const tr_run *run, const tr_machine **machine,
                              tr_machine **own, tr_error *err) {
    *own = NULL;
    *machine = run->given.parts.machine;
    if (*machine) {
        return TR_OK;
    }
    tr_calibration how = {.nvme = tr__run_nvme_folder(run), .known_only = true};
    tr_status status = tr__calibrate(&run->request, run->comm, &how, own, err);
    *machine = *own;
    return status;
}

tr_status tr__run_predict(const tr_run *run, const tr_plan *plan, double *seconds,
                          tr_error *err) {
    const tr_machine *machine = NULL;
    tr_machine *own = NULL;
    tr_simulated *simulated = NULL;
    *seconds = 0;
    tr_status status = find_machine(run, &machine, &own, err);
    bool asks = status == TR_OK && machine && tr__comm_leads(run->comm);
    if (asks && tr_simulate(plan, machine, &simulated, NULL) == TR_OK) {
        *seconds = tr_simulated_result(simulated)->seconds;
    }
    tr_simulated_destroy(simulated);
    tr_machine_close(own);
    return status;
}
