#include "plan/flow/prepared.h"

#include "backend/backend.h"
#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

static uint64_t hash_tensors(uint64_t hash, const tr_tensor_desc *tensors, int count) {
    for (int i = 0; i < count; i++) {
        const tr_shape *shape = &tensors[i].shape;
        const int64_t numbers[] = {tensors[i].dtype, shape->rank};
        hash = tr__hash_more(hash, numbers, sizeof numbers);
        hash = tr__hash_more(hash, shape->dim, sizeof shape->dim);
    }
    return hash;
}

static uint64_t hash_of(const tr_op_desc *desc) {
    const int64_t numbers[] = {desc->fresh,          desc->accumulate,
                               desc->target.backend, desc->target.level,
                               desc->target.workers, desc->target.attention};
    uint64_t hash = tr__hash_more(0, &desc->op, sizeof(const tr_op *));
    hash = tr__hash_more(hash, desc->attr, sizeof desc->attr);
    hash = tr__hash_more(hash, numbers, sizeof numbers);
    hash = hash_tensors(hash, desc->in, desc->in_count);
    return hash_tensors(hash, desc->out, desc->out_count);
}

static bool are_same_tensors(const tr_tensor_desc *a, const tr_tensor_desc *b,
                             int count) {
    bool same = true;
    for (int i = 0; i < count; i++) {
        same = same && a[i].dtype == b[i].dtype &&
               (a[i].dtype == TR_NONE || tr_shape_equal(a[i].shape, b[i].shape));
    }
    return same;
}

static bool are_same_ops(const tr_op_desc *a, const tr_op_desc *b) {
    return a->op == b->op && memcmp(a->attr, b->attr, sizeof a->attr) == 0 &&
           a->in_count == b->in_count && a->out_count == b->out_count &&
           a->fresh == b->fresh && a->accumulate == b->accumulate &&
           a->target.backend == b->target.backend &&
           a->target.level == b->target.level &&
           a->target.workers == b->target.workers &&
           a->target.attention == b->target.attention &&
           are_same_tensors(a->in, b->in, a->in_count) &&
           are_same_tensors(a->out, b->out, a->out_count);
}

// The place of a description among the prepared ops' hashes; it is empty where none is
// the same.
static size_t *find_place(const tr_plan *plan, const tr_op_desc *desc) {
    size_t at = (size_t)hash_of(desc) & (plan->prepared_room - 1);
    while (plan->prepared_by_hash[at] > 0 &&
           !are_same_ops(&plan->prepared[plan->prepared_by_hash[at] - 1].desc, desc)) {
        at = (at + 1) & (plan->prepared_room - 1);
    }
    return &plan->prepared_by_hash[at];
}

// Room for one more, half of the places staying empty.
static bool make_room(tr_plan *plan) {
    if (2 * (plan->prepared_count + 1) <= plan->prepared_room) {
        return true;
    }
    tr__free(plan->prepared_by_hash);
    plan->prepared_room = plan->prepared_room > 0 ? 2 * plan->prepared_room : 64;
    plan->prepared_by_hash =
        tr__calloc(plan->prepared_room, sizeof *plan->prepared_by_hash);
    for (size_t i = 0; plan->prepared_by_hash && i < plan->prepared_count; i++) {
        *find_place(plan, &plan->prepared[i].desc) = i + 1;
    }
    return plan->prepared_by_hash;
}

// The reference where it is asked for, but of 16 bits, which no reference here has:
// kernels that need nothing prepared. (kernels.c looks whether there is one.)
const tr_kernel *tr__prepared_kernel(const tr_op_desc *of) {
    tr_op_desc desc = *of;
    const tr_kernel *reference = desc.op->reference;
    if (desc.target.level < 0 && reference->supports(&desc)) {
        return reference;
    }
    desc.target.level = desc.target.level < 0 ? 0 : desc.target.level;
    return tr__kernel_find(&desc);
}

tr_status tr__plan_prepare(tr_plan *plan, const tr_op_desc *desc, size_t *index,
                           tr_error *err) {
    if (!make_room(plan) ||
        !tr__grow((void **)&plan->prepared, &plan->prepared_capacity,
                  plan->prepared_count + 1, sizeof *plan->prepared)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's launches");
    }
    size_t *place = find_place(plan, desc);
    if (*place == 0) {
        plan->prepared[plan->prepared_count++] =
            (tr_prepared_op){*desc, tr__prepared_kernel(desc)};
        *place = plan->prepared_count;
    }
    *index = *place - 1;
    return TR_OK;
}
