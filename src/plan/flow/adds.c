// Every contribution to a gradient, a sum or a wave tensor is an add. The first one to
// the bytes of a value in the sequence finds nothing there yet, so it writes them; and
// so does a step that takes what it adds up out of the same bytes.
#include "base/memory.h"
#include "plan/flow/extents.h"
#include "plan/flow/schedule.h"

// The accesses of one step.
typedef struct accesses {
    const tr_access *begin, *end;
} accesses;

static bool overlap(const tr_access *a, const tr_access *b) {
    return a->value == b->value && a->first < b->end && b->first < a->end;
}

static bool is_in_place(const accesses *of, const tr_access *contribution) {
    for (const tr_access *a = of->begin; a < of->end; a++) {
        if (a->mode == TR_ACCESS_READ && overlap(a, contribution)) {
            return true;
        }
    }
    return false;
}

static bool is_begun(const tr_extents *value, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        if (value->items[i].writer >= 0) {
            return true;
        }
    }
    return false;
}

// values: [buffers], the writer of bytes being who has contributed to them last. An
// operand of which some bytes are added to adds to all of them. false: no memory.
static bool contribute(tr_plan *plan, const accesses *of, int32_t index,
                       tr_extents *values) {
    for (const tr_access *a = of->begin; a < of->end; a++) {
        if (a->contributes > 0) {
            plan->operands[a->contributes - 1].mode = TR_ACCESS_WRITE;
        }
    }
    for (const tr_access *a = of->begin; a < of->end; a++) {
        size_t first, end;
        if (a->contributes == 0) {
            continue;
        }
        if (!tr__extents_cut(&values[a->value], plan->buffers[a->value].bytes, a,
                             &first, &end)) {
            return false;
        }
        if (is_begun(&values[a->value], first, end) && !is_in_place(of, a)) {
            plan->operands[a->contributes - 1].mode = TR_ACCESS_ADD;
        }
        tr__extents_write(&values[a->value], first, end, index);
    }
    return true;
}

tr_status tr__adds_find(tr_plan *plan, tr_sequence_kind kind,
                        const tr_accesses *accesses_, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    tr_extents *values = tr__calloc(plan->buffer_count, sizeof *values);
    bool good = values;
    for (size_t i = 0; i < sequence->count && good; i++) {
        accesses of = {accesses_->items + accesses_->begin[i],
                       accesses_->items + accesses_->begin[i + 1]};
        good = contribute(plan, &of, (int32_t)i, values);
    }
    tr__extents_free(values, plan->buffer_count);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for the plan's adds");
}
