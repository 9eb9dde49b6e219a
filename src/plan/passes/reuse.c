// Pass: on a discrete device, who waits because values share memory.
//
// There a value counts as done with when its last step of the compute stream is issued
// (lifetimes.c), so its memory may go to a value that another stream writes while that
// step is still to come. A step that names a value first takes its memory: it waits for
// all steps that had the memory before. Elsewhere lifetimes alone keep values apart.
#include "base/memory.h"
#include "plan/flow/extents.h"
#include "plan/flow/passes.h"
#include "plan/flow/schedule.h"

typedef struct reuse {
    const tr_plan *plan;
    const tr_sequence *sequence;
    tr_extents memory[TR_SPACES]; // by address; reader: who had it last
    int32_t step;
    int32_t *on; // [TR_STREAMS] of the step
    bool failed;
} reuse;

static void wait_for_tenants(reuse *r, const tr_extent *extent) {
    for (int s = 0; s < TR_STREAMS; s++) {
        r->on[s] = extent->reader[s] > r->on[s] ? extent->reader[s] : r->on[s];
    }
}

// The step has the memory of a passing value.
static void have(reuse *r, int32_t value) {
    const tr_buffer *b = value < 0 ? NULL : &r->plan->buffers[value];
    if (!b || b->sequence < 0 || b->bytes == 0 || r->failed) {
        return;
    }
    tr_extents *memory = &r->memory[b->space];
    tr_access all = {.first = b->offset, .end = b->offset + b->bytes};
    size_t first, end;
    if (!tr__extents_cut(memory, r->plan->arena_bytes[b->space], &all, &first, &end)) {
        r->failed = true;
        return;
    }
    for (size_t i = first; i < end; i++) {
        if (b->first == r->step) {
            wait_for_tenants(r, &memory->items[i]);
        }
        memory->items[i].reader[r->sequence->steps[r->step].stream] = r->step;
    }
}

static tr_status find(reuse *r, const tr_accesses *accesses, tr_dependencies *out,
                      tr_error *err) {
    for (size_t i = 0; i < r->sequence->count; i++) {
        r->step = (int32_t)i;
        r->on = out->on[i];
        for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1]; k++) {
            have(r, accesses->items[k].value);
        }
    }
    for (int space = 0; space < TR_SPACES; space++) {
        tr__free(r->memory[space].items);
    }
    return r->failed ? tr_fail(err, TR_MEMORY, "no memory for the plan's waits")
                     : TR_OK;
}

tr_status tr__reuse_from(tr_plan *plan, tr_sequence_kind kind,
                         const tr_accesses *accesses, tr_error *err) {
    reuse r = {.plan = plan, .sequence = &plan->sequences[kind]};
    tr_dependencies dependencies = {0};
    tr_status status = tr__schedule_find(plan, kind, accesses, &dependencies, err);
    if (status == TR_OK) {
        status = find(&r, accesses, &dependencies, err);
    }
    if (status == TR_OK) {
        status = tr__schedule_waits(plan, kind, &dependencies, err);
    }
    tr__schedule_clear(&dependencies);
    return status;
}

tr_status tr__pass_reuse(tr_plan *plan, tr_error *err) {
    return plan->request.discrete ? tr__schedule_all(plan, tr__reuse_from, err) : TR_OK;
}
