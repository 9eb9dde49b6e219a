// Has a machine all that a plan's step uses?
#include "sim/simulate.h"

static tr_status check_way(const tr_machine *machine, tr_way way, const char *who,
                           tr_error *err) {
    return machine->way[way].rate > 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "machine %.200s: %s need %s.bytes, which is not there",
                         machine->name, who, tr__way_key(way));
}

// The ways on which the plan's steps move something.
static void find_ways(const tr_plan *plan, bool used[TR_WAYS]) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        if (tr__step_copied(plan, step) + tr__step_stored(plan, step) > 0) {
            used[tr__move_way(plan, step)] = true;
        }
        used[TR_WAY_TO_HOST] |= tr__step_reach(plan, step).written > 0;
    }
}

static tr_status check_ways(const tr_share *share, const tr_plan *plan, tr_error *err) {
    static const char *const who[TR_WAYS] = {
        "several ranks on a node", "several nodes",       "plans that offload",
        "plans that offload",      "plans that use NVMe", "plans that use NVMe"};
    const tr_machine *m = share->machine;
    bool used[TR_WAYS] = {[TR_WAY_INSIDE] = share->sharers > 1,
                          [TR_WAY_BETWEEN] = share->ranks > share->sharers};
    tr_status status = TR_OK;
    find_ways(plan, used);
    for (int way = 0; way < TR_WAYS && status == TR_OK; way++) {
        status = used[way] ? check_way(m, (tr_way)way, who[way], err) : TR_OK;
    }
    bool away = plan->request.optimizer_placement != TR_SPACE_DEVICE;
    if (status == TR_OK && away && m->host_rate == 0) {
        return tr_fail(err, TR_USAGE,
                       "machine %.200s: an optimizer on the host needs host.bytes, "
                       "which is not there",
                       m->name);
    }
    return status;
}

tr_status tr__simulate_check(const tr_plan *plan, const tr_machine *machine,
                             tr_error *err) {
    tr_share share = tr__machine_share(machine, tr_mesh_ranks(&plan->request.mesh),
                                       plan->ledger.total[TR_SPACE_DEVICE]);
    return check_ways(&share, plan, err);
}
