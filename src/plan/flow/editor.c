#include "plan/flow/editor.h"

#include "base/memory.h"
#include "ops/flat/accumulate/accumulate.h"

tr_editor tr__edit_begin(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    const tr_sequence *old = &plan->sequences[kind];
    size_t packed = 2 * (size_t)plan->unit_count;
    tr_editor editor = {.plan = plan,
                        .kind = kind,
                        .old = old,
                        .edited = {.ids = old->ids},
                        .now = {.plan = plan, .err = err},
                        .packed_of = tr__calloc(packed, sizeof *editor.packed_of),
                        .err = err};
    for (size_t i = 0; editor.packed_of && i < packed; i++) {
        editor.packed_of[i].value = -1;
    }
    editor.status = editor.packed_of
                        ? TR_OK
                        : tr_fail(err, TR_MEMORY, "no memory for the plan's values");
    if (editor.status == TR_OK && !plan->unit_values[kind].boundary) {
        editor.status = tr__unit_values_make(plan, kind, err);
    }
    return editor;
}

void tr__edit_refuse(tr_editor *editor, tr_status status) {
    editor->status = editor->status == TR_OK ? status : editor->status;
}

// ---- what stands in for the values of a step

// The newest of the values that have what the step's program packs. Parameters that
// stay are packed once a step, others each time they are brought.
static int32_t newest_packed(const tr_plan *plan, const tr_plan_step *step,
                             tr_place place) {
    const tr_program *program = step->payload.program;
    int32_t newest = 0;
    for (size_t i = 0; i < program->count && !tr__plan_params_stay(plan); i++) {
        const tr_instruction *at = &program->instructions[i];
        if (at->packed.place == place) {
            int block = at->in[at->desc.op->packed_input - 1].block;
            int32_t of = tr__step_operand(plan, step, (size_t)block)->buffer;
            newest = of > newest ? of : newest;
        }
    }
    return newest;
}

static tr_packed_by packed_by(const tr_plan_step *step) {
    return tr__step_runs(step, TR_VARIANT_BACKWARD)    ? TR_PACKED_BY_BACKWARD
           : tr__step_runs(step, TR_VARIANT_RECOMPUTE) ? TR_PACKED_BY_RECOMPUTATION
                                                       : TR_PACKED_BY_FORWARD;
}

// A backward, or a recomputation, that finds parameters brought anew packs only those
// that it multiplies by: a forward behind it packs all of them again.
static void renew_packed(tr_editor *e, const tr_plan_step *step, tr_place place) {
    int32_t index = 2 * step->unit + (place == TR_PLACE_PACKED_BACKWARD);
    tr_packed_now *at = &e->packed_of[index];
    int32_t newest = newest_packed(e->plan, step, place);
    tr_packed_by by = packed_by(step);
    bool brought = at->value >= 0 && at->value != newest;
    bool again = !brought && by < at->by;
    if (brought || again) {
        tr__stand_in_renew(&e->now, e->plan->unit_values[e->kind].packed[index]);
    }
    if (brought || again || at->value < 0) {
        *at = (tr_packed_now){newest, by};
    }
}

// Blocks of parameters come before what is packed of them.
static void re_point_program(tr_editor *e, const tr_plan_step *step) {
    const tr_program *program = step->payload.program;
    for (size_t i = 0; i < program->block_count; i++) {
        tr_place place = program->blocks[i].place;
        tr_step_operand *block = tr__step_operand(e->plan, step, i);
        if (place == TR_PLACE_PACKED || place == TR_PLACE_PACKED_BACKWARD) {
            renew_packed(e, step, place);
        }
        block->buffer = tr__stand_in(&e->now, block->buffer);
    }
}

int32_t tr__edit_append(tr_editor *editor, tr_plan_step step) {
    tr_sequence *edited = &editor->edited;
    if (editor->status == TR_OK) {
        editor->status = tr__sequence_add(edited, step, editor->err);
    }
    if (editor->status != TR_OK) {
        return 0;
    }
    return editor->last[step.stream] = edited->steps[edited->count - 1].id;
}

int32_t tr__edit_add(tr_editor *editor, tr_plan_step step) {
    if (editor->status != TR_OK) {
        return 0;
    }
    if (tr__payload_program(&step)) {
        re_point_program(editor, &step);
    } else {
        tr__stand_in_step(&editor->now, &step);
    }
    editor->status = editor->now.status;
    return tr__edit_append(editor, step);
}

void tr__edit_launch(tr_editor *editor, const tr_program *program, tr_plan_step *step) {
    if (editor->status == TR_OK) {
        editor->status =
            tr__unit_launch(editor->plan, editor->kind, program, step, editor->err);
    }
}

// ---- values

static int32_t add_value(tr_editor *editor, tr_buffer value) {
    int32_t added = -1;
    if (editor->status == TR_OK) {
        added = tr__plan_buffer(editor->plan, value, editor->err);
        editor->status = added < 0 ? TR_MEMORY : TR_OK;
    }
    return added;
}

int32_t tr__edit_value(tr_editor *editor, tr_ledger_category category, tr_space space,
                       int64_t bytes) {
    return bytes == 0 ? -1
                      : add_value(editor, (tr_buffer){.category = category,
                                                      .space = space,
                                                      .sequence = editor->kind,
                                                      .bytes = bytes,
                                                      .first = INT32_MAX,
                                                      .last = -1});
}

int32_t tr__edit_value_like(tr_editor *editor, int32_t like, tr_space space) {
    if (like < 0) {
        return -1;
    }
    tr_buffer value = editor->plan->buffers[like];
    value.space = space;
    return add_value(editor, value);
}

int32_t tr__edit_params(tr_editor *editor, int flat) {
    return editor->status == TR_OK
               ? tr__param_value(editor->plan, editor->kind, flat, editor->err)
               : -1;
}

int32_t tr__edit_grads(tr_editor *editor, int flat) {
    return editor->status == TR_OK
               ? tr__grad_value(editor->plan, editor->kind, flat, editor->err)
               : -1;
}

int32_t tr__edit_sums(tr_editor *editor, int flat) {
    return editor->status == TR_OK
               ? tr__sum_value(editor->plan, editor->kind, flat, editor->err)
               : -1;
}

int32_t tr__edit_convert(tr_editor *editor, const tr_plan_step *step, tr_convert use,
                         bool shared) {
    tr_plan *plan = editor->plan;
    bool host = step->stream == TR_STREAM_HOST;
    int32_t none = -1, *entry = &plan->unit_values[editor->kind].convert[host][use];
    entry = shared ? entry : &none;
    if (*entry < 0 && tr__plan_accumulates(plan)) {
        *entry = tr__edit_value(editor, TR_LEDGER_workspace,
                                host ? tr__plan_shared_space(plan) : TR_SPACE_DEVICE,
                                TR_CONVERT_ELEMENTS * (int64_t)sizeof(float));
    }
    return *entry;
}

int32_t tr__edit_stand_in(tr_editor *editor, int32_t value) {
    return tr__stand_in(&editor->now, value);
}

void tr__edit_renew(tr_editor *editor, int32_t value) {
    tr__stand_in_renew(&editor->now, value);
}

// ---- order

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
    tr__stand_ins_clear(&editor->now);
    tr__free(editor->packed_of);
    if (editor->status == TR_OK) {
        *sequence = editor->edited;
    }
    return editor->status;
}
