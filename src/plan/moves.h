// Steps that move bytes: what they move, from where and to where. The executor does it,
// accesses and costs follow from it.
#ifndef TR_PLAN_MOVES_H
#define TR_PLAN_MOVES_H

#include "comm/mesh.h"
#include "plan/plan.h"

// Bytes [first, end) of a buffer of the plan; buffer -1: none.
typedef struct tr_region {
    int32_t buffer;
    int64_t first, end;
} tr_region;

// Between spaces, or within one.
typedef struct tr_copy {
    tr_region from, to; // of one size
} tr_copy;

// Between ranks (comm.h): elements of `bytes` each.
typedef struct tr_exchange {
    tr_comm_kind kind;
    tr_comm_type type;
    tr_axes group;        // the step's
    int64_t count, shard; // elements of `type`
    tr_region send;       // none: this rank's part of recv
    tr_region recv;
    bool adds;            // to what recv holds
    uint64_t contributes; // bit of tr_plan_step.writes; 0: recv is written always
} tr_exchange;

// Between the file and memory.
typedef struct tr_file_move {
    bool reads;       // from the file
    tr_region stored; // in the arena that the file is
    tr_region memory;
} tr_file_move;

// What the step moves. false: it moves nothing so.
bool tr__step_copy(const tr_plan *plan, const tr_plan_step *step, tr_copy *out);
bool tr__step_exchange(const tr_plan *plan, const tr_plan_step *step, tr_exchange *out);
// Is some of it in a device's memory that messages do not reach? Then it is ferried
// (tr_comm_ferry).
bool tr__exchange_is_away(const tr_plan *plan, const tr_exchange *exchange);
// Does it pass through the staging of exchanges? It does not where devices make it by
// themselves.
bool tr__exchange_is_staged(const tr_plan *plan, const tr_plan_step *step);
// Of an exchange: all in which the ranks of its group have to agree. 0: it is none.
uint64_t tr__exchange_hash(const tr_plan *plan, const tr_plan_step *step);
bool tr__step_file(const tr_plan *plan, const tr_plan_step *step, tr_file_move *out);

#endif
