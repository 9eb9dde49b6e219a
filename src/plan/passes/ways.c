#include "plan/passes/ways.h"

#include "base/checked.h"
#include "base/memory.h"

tr_status tr__ways_begin(tr_ways *ways, tr_plan *plan, tr_sequence_kind kind,
                         tr_error *err) {
    const tr_underway nothing = {-1, -1, -1, -1, -1, false, false, false};
    ways->editor = tr__edit_begin(plan, kind, err);
    ways->of = tr__calloc(plan->flat_count + 1, sizeof *ways->of);
    for (size_t f = 0; ways->of && f < plan->flat_count; f++) {
        ways->of[f] = nothing;
    }
    return ways->of ? ways->editor.status
                    : tr_fail(err, TR_MEMORY, "no memory to plan what moves");
}

tr_status tr__ways_end(tr_ways *ways, tr_status status) {
    tr_editor *editor = &ways->editor;
    tr__free(ways->of);
    editor->status = editor->status == TR_OK ? status : editor->status;
    return tr__edit_end(editor);
}

int32_t tr__ways_made(tr_ways *ways, int flat) {
    tr_editor *e = &ways->editor;
    return tr__edit_stand_in(e, tr__plan_accumulates(e->plan)
                                    ? tr__edit_sums(e, flat)
                                    : tr__edit_grads(e, flat));
}

int32_t tr__ways_take(tr_ways *ways, int flat) {
    tr_editor *e = &ways->editor;
    int32_t made = tr__ways_made(ways, flat);
    tr__edit_renew(e, tr__plan_accumulates(e->plan) ? tr__edit_sums(e, flat)
                                                    : tr__edit_grads(e, flat));
    return made;
}

int64_t tr__part_elements(const tr_flat *flat) {
    return tr__min_i64(flat->shard, flat->count);
}
