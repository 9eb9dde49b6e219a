#include "plan/editor.h"

#include "base/memory.h"

tr_editor tr__edit_begin(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    const tr_sequence *old = &plan->sequences[kind];
    tr_editor editor = {.plan = plan,
                        .kind = kind,
                        .old = old,
                        .edited = {.ids = old->ids},
                        .err = err};
    editor.status = tr__values_begin(plan, kind, &editor.values, err);
    return editor;
}

int32_t tr__edit_add(tr_editor *editor, tr_plan_step step) {
    tr_sequence *edited = &editor->edited;
    if (editor->status == TR_OK) {
        editor->status = tr__values_step(editor->values, &step);
    }
    if (editor->status == TR_OK) {
        editor->status = tr__sequence_add(edited, step, editor->err);
    }
    return editor->status == TR_OK ? edited->steps[edited->count - 1].id : 0;
}

tr_step_draft tr__edit_draft(tr_plan_step step) {
    tr_step_draft draft = {.step = step};
    for (int i = 0; i < TR_SLOTS; i++) {
        draft.buffer[i] = -1;
    }
    return draft;
}

int32_t tr__edit_make(tr_editor *editor, tr_step_draft draft) {
    if (editor->status == TR_OK) {
        editor->status = tr__values_draft(editor->values, &draft);
    }
    return tr__edit_add(editor, draft.step);
}

int32_t tr__edit_grads(tr_editor *editor, int flat) {
    return tr__grad_value(editor->plan, editor->kind, flat, editor->err);
}

int32_t tr__edit_sums(tr_editor *editor, int flat) {
    return tr__sum_value(editor->plan, editor->kind, flat, editor->err);
}

void tr__edit_launch(tr_editor *editor, const tr_program *program, tr_plan_step *step) {
    if (editor->status == TR_OK) {
        editor->status =
            tr__unit_launch(editor->plan, editor->kind, program, step, editor->err);
    }
}

int32_t tr__edit_value(tr_editor *editor, int32_t like, tr_space space) {
    if (like < 0 || editor->status != TR_OK) {
        return -1;
    }
    tr_buffer buffer = editor->plan->buffers[like];
    buffer.space = space;
    int32_t value = tr__plan_buffer(editor->plan, buffer, editor->err);
    editor->status = value < 0 ? TR_MEMORY : TR_OK;
    return value;
}

int32_t tr__edit_stand_in(tr_editor *editor, int32_t value) {
    return tr__stand_in(tr__values_now(editor->values), value);
}

void tr__edit_renew(tr_editor *editor, int32_t value) {
    tr__stand_in_renew(tr__values_now(editor->values), value);
}

static void add_whole(tr_editor *editor, int32_t value, tr_access_mode mode) {
    int64_t bytes = value < 0 ? 0 : editor->plan->buffers[value].bytes;
    tr_step_operand all = {.buffer = value, .mode = mode, .end = bytes};
    if (editor->status == TR_OK) {
        editor->status = tr__plan_operand(editor->plan, all, editor->err);
    }
}

int32_t tr__edit_copy(tr_editor *editor, tr_plan_step step, int32_t from, int32_t to) {
    step.payload = (tr_payload){.operand = editor->plan->operand_count,
                                .operand_count = TR_COPY_TO + 1};
    step.made = true;
    add_whole(editor, from, TR_ACCESS_READ);
    add_whole(editor, to, TR_ACCESS_WRITE);
    return tr__edit_add(editor, step);
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
    tr__values_end(editor->values);
    if (editor->status == TR_OK) {
        *sequence = editor->edited;
    }
    return editor->status;
}
