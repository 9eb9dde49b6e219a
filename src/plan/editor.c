#include "plan/editor.h"

#include "base/memory.h"

tr_editor tr__edit_begin(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    const tr_sequence *old = &plan->sequences[kind];
    return (tr_editor){.plan = plan,
                       .kind = kind,
                       .old = old,
                       .edited = {.ids = old->ids},
                       .err = err};
}

int32_t tr__edit_add(tr_editor *editor, tr_plan_step step) {
    tr_sequence *edited = &editor->edited;
    if (editor->status == TR_OK) {
        editor->status = tr__sequence_add(edited, step, editor->err);
    }
    return editor->status == TR_OK ? edited->steps[edited->count - 1].id : 0;
}

void tr__edit_limit(tr_editor *editor, int32_t before, int32_t after) {
    tr_sequence *edited = &editor->edited;
    if (before == 0 || after == 0 || editor->status != TR_OK) {
        return;
    }
    if (!tr__grow((void **)&edited->limits, &edited->limit_capacity,
                  edited->limit_count + 1, sizeof *edited->limits)) {
        editor->status = tr_fail(editor->err, TR_MEMORY, "no memory for a plan");
        return;
    }
    edited->limits[edited->limit_count++] = (tr_limit){before, after};
}

tr_status tr__edit_end(tr_editor *editor) {
    tr_sequence *sequence = &editor->plan->sequences[editor->kind];
    for (size_t i = 0; i < sequence->limit_count; i++) {
        tr__edit_limit(editor, sequence->limits[i].before, sequence->limits[i].after);
    }
    tr_sequence *dropped = editor->status == TR_OK ? sequence : &editor->edited;
    tr__free(dropped->steps);
    tr__free(dropped->limits);
    if (editor->status == TR_OK) {
        *sequence = editor->edited;
    }
    return editor->status;
}
