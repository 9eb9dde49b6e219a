// What a step of the plan asks of a machine: arithmetic, memory, messages.
#ifndef TR_PLAN_FLOW_WORK_H
#define TR_PLAN_FLOW_WORK_H

#include "comm/comm.h"
#include "plan/flow/plan.h"

// Bytes that a step reads and writes in memory by itself, not by the instructions of a
// unit's program: accumulates, norms, updates, clears. 0 for other kinds.
double tr__step_bytes(const tr_plan *plan, const tr_plan_step *step);

// Bytes that a step moves between the device and where a flat buffer lives. 0: none.
int64_t tr__step_copied(const tr_plan *plan, const tr_plan_step *step);

// Bytes that a launch reaches in the other space, and nothing copies: what an update on
// the device reads and writes where parameters live, and what the host adds from the
// device. 0: those of other steps.
typedef struct tr_reach {
    int64_t read, written; // to the device; to the host
} tr_reach;

tr_reach tr__step_reach(const tr_plan *plan, const tr_plan_step *step);

// Bytes that a step moves between NVMe and staging. 0: none.
int64_t tr__step_stored(const tr_plan *plan, const tr_plan_step *step);

// An operation of the ranks (comm.h): elements of `bytes` each.
typedef struct tr_transfer {
    tr_comm_kind kind;
    int64_t count, shard; // elements
    int64_t bytes;        // of an element
    bool away;            // copied between device and host on its way, for messages
    bool pair;            // of two members of its group, which need be no neighbours
    // The group: its ranks, which of them this plan's is, how far two neighbours are
    // apart, and the first one's rank.
    int64_t members, member, stride, first;
    tr_exchange_algorithm algorithm;
    int64_t near;       // members that exchange on their node first; 1: none do
    int64_t node_ranks; // on each node; 0: all are on one
} tr_transfer;

// As what elements of this type are summed over ranks.
tr_comm_type tr__exchange_type(tr_dtype dtype);
// Is the exchange one of two ranks of its group?
bool tr__exchange_is_pair(const tr_exchange *exchange);
// The ranks that take part in it, and which of them this plan's is.
int64_t tr__exchange_members(const tr_plan *plan, const tr_exchange *exchange);
int64_t tr__exchange_member(const tr_plan *plan, const tr_exchange *exchange);
// Is some of what a step exchanges in a device's memory that messages do not reach?
// Then it is ferried (tr_comm_ferry).
bool tr__exchange_is_away(const tr_plan *plan, const tr_plan_step *step);
// Of an exchange: all in which the ranks of its group have to agree. 0: it is none.
uint64_t tr__exchange_hash(const tr_plan_step *step);
// The operation that a step starts; false: none.
bool tr__step_transfer(const tr_plan *plan, const tr_plan_step *step, tr_transfer *out);
// Bytes that this plan's rank sends.
int64_t tr__transfer_sent(const tr_transfer *transfer);
// Those of them that go to other nodes.
int64_t tr__transfer_between(const tr_transfer *transfer);

#endif
