// Nodes of ranks, and how ranks exchange. Where figures tell what links reach, the plan
// chooses for each exchange; where none do, ranks of several nodes exchange by nodes,
// which sends less between them.
#include "comm/mesh.h"
#include "plan/flow/algorithm.h"
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

static const char algorithm_key[] = "execution.exchange_algorithm",
                  nodes_key[] = "execution.hierarchical";

// As the machine's file says it. Libraries of collectives have algorithms of their own.
static tr_exchange_algorithm algorithm_of_machine(const tr_machine *machine) {
    if (!machine) {
        return TR_EXCHANGE_AUTO;
    }
    return machine->exchange == TR_EXCHANGE_NCCL
               ? TR_EXCHANGE_DIRECT
               : (tr_exchange_algorithm)machine->exchange;
}

static tr_status check_keys(const tr_run *run, tr_error *err) {
    const tr_plan_request *r = &run->request;
    if (is_open(run, algorithm_key) || is_open(run, nodes_key)) {
        return TR_OK;
    }
    bool by_nodes = r->algorithm == TR_EXCHANGE_HIERARCHICAL;
    bool against = r->hierarchical ? r->algorithm == TR_EXCHANGE_DIRECT : by_nodes;
    return against ? tr_fail(err, TR_USAGE,
                             "%s is \"%s\", but %s is %s: leave one of them out",
                             algorithm_key, tr__algorithm_name(r->algorithm), nodes_key,
                             r->hierarchical ? "true" : "false")
                   : TR_OK;
}

tr_status tr__run_resolve_nodes(tr_run *run, tr_error *err) {
    const tr_machine *machine = run->given.parts.machine;
    tr_plan_request *r = &run->request;
    r->reduced_at_once = run->comm ? tr__comm_chunks(run->comm) : 0;
    if (is_open(run, "execution.ranks_per_node")) {
        r->node_ranks = node_ranks(run);
    }
    if (is_open(run, algorithm_key)) {
        r->algorithm = is_open(run, nodes_key) ? algorithm_of_machine(machine)
                       : r->hierarchical       ? TR_EXCHANGE_HIERARCHICAL
                                               : TR_EXCHANGE_DIRECT;
    }
    if (is_open(run, nodes_key)) {
        r->hierarchical = r->algorithm != TR_EXCHANGE_DIRECT;
    }
    if (machine && machine->exchange != TR_EXCHANGE_NCCL) {
        tr__machine_links(machine, r);
    }
    return check_keys(run, err);
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
    if (!machine || r->algorithm != TR_EXCHANGE_AUTO || !r->hierarchical ||
        !tr__mesh_has_nodes(&r->mesh, r->node_ranks)) {
        return;
    }
    direct.hierarchical = false;
    if (predict(r, machine, &seconds[0]) && predict(&direct, machine, &seconds[1])) {
        run->request.hierarchical = seconds[0] < seconds[1];
    }
}
