// Nodes of ranks, and how ranks of several nodes exchange. Where no figures tell rates
// on a node from those between nodes, they exchange by nodes, which sends less between
// them.
#include "comm/mesh.h"
#include "plan/flow/passes.h"
#include "run/run.h"
#include "sim/machine.h"

static bool is_open(const tr_run *run, const char *key) {
    return !tr__config_is_decided(run->config, key);
}

// Libraries of collectives know nodes themselves.
static int64_t node_ranks(const tr_run *run) {
    const tr_machine *machine = run->given.parts.machine;
    if (machine) {
        return machine->exchange == TR_EXCHANGE_NCCL ? 0 : machine->ranks_per_node;
    }
    bool here =
        run->comm && tr_comm_ranks(run->comm) == tr_mesh_ranks(&run->request.mesh);
    return here ? tr__comm_node_ranks(run->comm) : 0;
}

void tr__run_resolve_nodes(tr_run *run) {
    const tr_machine *machine = run->given.parts.machine;
    tr_exchange_method method = machine ? machine->exchange : TR_EXCHANGE_OPEN;
    if (is_open(run, "execution.ranks_per_node")) {
        run->request.node_ranks = node_ranks(run);
    }
    if (is_open(run, "execution.hierarchical")) {
        run->request.hierarchical =
            method == TR_EXCHANGE_OPEN || method == TR_EXCHANGE_HIERARCHICAL;
    }
}

// Seconds of a step. An error is one of the plan itself, which is told where it is
// made.
static bool predict(const tr_plan_request *request, const tr_machine *machine,
                    double *seconds) {
    tr_plan *plan = NULL;
    tr_simulated *simulated = NULL;
    bool known = tr__plan_draft(request, &plan, NULL) == TR_OK &&
                 tr_simulate(plan, machine, &simulated, NULL) == TR_OK;
    *seconds = known ? tr_simulated_result(simulated)->seconds : 0;
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    return known;
}

void tr__run_choose_exchange(tr_run *run) {
    const tr_machine *machine = run->given.parts.machine;
    const tr_plan_request *r = &run->request;
    tr_plan_request direct = *r;
    double seconds[2];
    if (!machine || machine->exchange != TR_EXCHANGE_OPEN || !r->hierarchical ||
        !is_open(run, "execution.hierarchical") ||
        !tr__mesh_has_nodes(&r->mesh, r->node_ranks)) {
        return;
    }
    direct.hierarchical = false;
    if (predict(r, machine, &seconds[0]) && predict(&direct, machine, &seconds[1])) {
        run->request.hierarchical = seconds[0] < seconds[1];
    }
}
