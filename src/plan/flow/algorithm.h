// Algorithms of exchanges: what each one sends, its time on given links, and which one
// an exchange takes.
#ifndef TR_PLAN_FLOW_ALGORITHM_H
#define TR_PLAN_FLOW_ALGORITHM_H

#include "comm/algorithm.h"
#include "plan/flow/work.h"

// Of the algorithms behind AUTO, in the order of tr_exchange_algorithm.
#define TR_EXCHANGE_NAMES "direct", "hierarchical", "ring", "tree"

const char *tr__algorithm_name(tr_exchange_algorithm algorithm); // "ring"
// AUTO: there is none of that name.
tr_exchange_algorithm tr__algorithm_find(const char *name);
// As an operation of one stage has it.
tr_comm_algorithm tr__algorithm_of_op(tr_exchange_algorithm algorithm);

// What messages take.
typedef struct tr_links {
    tr_link_figures inside, between; // nodes
    bool shared_between;             // as in the request
    int64_t node_ranks;              // on each node
    int64_t ranks;                   // in all
} tr_links;

// Bytes a second, in messages of so many bytes.
double tr__link_rate(const tr_link_figures *link, double message);
// Members of the exchange that are on one node, where ranks follow each other.
int64_t tr__transfer_on_node(const tr_transfer *transfer, int64_t node_ranks);
// Seconds of an exchange by its algorithm, of the rank that is busiest. AUTO: it is
// direct, or hierarchical where members are near.
double tr__algorithm_seconds(const tr_links *links, const tr_transfer *transfer);
// Bytes that the transfer's member sends; and those of them to other nodes.
int64_t tr__algorithm_sent(const tr_transfer *transfer);
int64_t tr__algorithm_between(const tr_transfer *transfer);

// Sets the transfer's algorithm and `near`. `near`: members that could exchange on
// their node first. `rounds`: sums are rounded, so that their order tells.
void tr__algorithm_choose(const tr_plan_request *request, bool rounds, int64_t near,
                          tr_transfer *transfer);

#endif
