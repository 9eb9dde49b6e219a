// Steps that run a unit's program: its operands bound to the step's buffers, its
// kernels launched one after the other.
#include "exec/walk.h"
#include "plan/wave.h"

typedef struct tr_bases {
    char *place[TR_PLACE_COUNT];
    char *param[TR_UNIT_FLATS_MAX], *grad[TR_UNIT_FLATS_MAX];
    int64_t part; // bytes from the wave tensors to the micro-batch's part of them
} tr_bases;

// Training keeps the sums of each micro-batch apart: they are added up in one order,
// whoever computed them.
static double *sums_of(const tr_work *work, const tr_plan_step *step) {
    const tr_plan *plan = work->ex->plan;
    return work->sequence == TR_SEQUENCE_TRAIN
               ? tr__own_record(work->ex) + plan->record.sums + step->micro * TR_SUMS
               : tr__memory(work->ex, plan->sums);
}

static void bind(const tr_work *work, const tr_plan_step *step, tr_bases *bases) {
    const tr_executor *ex = work->ex;
    const tr_plan_unit *unit = &ex->plan->units[step->unit];
    for (int place = 0; place < TR_PLACE_COUNT; place++) {
        tr_slot slot = tr__place_slot((tr_place)place);
        bases->place[place] =
            slot < TR_SLOTS ? tr__memory(ex, step->buffer[slot]) : NULL;
    }
    bases->place[TR_PLACE_DATA] = (char *)ex->micros[step->micro].data;
    bases->place[TR_PLACE_SUMS] = (char *)sums_of(work, step);
    bases->place[TR_PLACE_ANSWER] = tr__memory(ex, ex->plan->answer);
    bases->place[TR_PLACE_STATE] = tr__memory(ex, unit->states);
    const tr_binding *binding = &ex->plan->bindings[step->binding];
    for (int f = 0; f < unit->program->flat_count; f++) {
        bases->param[f] = tr__memory(ex, binding->param[f]);
        bases->grad[f] = tr__memory(ex, binding->grad[f]);
    }
}

static char *resolve(const tr_bases *bases, const tr_operand *operand) {
    switch (operand->place) {
    case TR_PLACE_NONE:
        return NULL;
    case TR_PLACE_PARAM:
        return bases->param[operand->flat] + operand->offset;
    case TR_PLACE_PARAM_GRAD:
        return bases->grad[operand->flat] + operand->offset;
    default:
        return bases->place[operand->place] + operand->offset;
    }
}

static bool is_wave(tr_place place) {
    return place == TR_PLACE_WAVE || place == TR_PLACE_WAVE_GRAD;
}

// What is written to wave tensors lies in the micro-batch's part of them; what is read
// is what the parts were merged to.
static char *resolve_result(const tr_bases *bases, const tr_operand *operand) {
    char *at = resolve(bases, operand);
    return is_wave(operand->place) ? at + bases->part : at;
}

static tr_status fail_step(tr_work *work, const tr_plan_step *step, tr_status failed) {
    const char *unit = tr__step_subject(work->ex->plan, step);
    return failed == TR_MEMORY
               ? tr_fail(work->err, failed,
                         "no memory for what oneDNN allocates itself in a product of "
                         "%s: leave some beside what the plan takes",
                         unit)
               : tr_fail(work->err, failed, "oneDNN failed in a product of %s", unit);
}

tr_status tr__run_program(tr_work *work, const tr_plan_step *step,
                          const tr_program *program) {
    tr_run_context run = work->run;
    tr_bases bases = {0};
    bind(work, step, &bases);
    int64_t parts = tr__wave_parts(work->ex->plan, work->sequence);
    bases.part =
        parts > 1 ? step->micro * work->ex->plan->units[step->unit].program->wave_bytes
                  : 0;
    bool watched = tr__watches_finite(work, step);
    tr_status failed = TR_OK;
    run.unit = (uint32_t)step->unit;
    run.rows = work->ex->micros[step->micro].rows;
    run.sample = work->ex->micros[step->micro].sample;
    for (size_t i = 0; i < program->count && failed == TR_OK; i++) {
        const tr_instruction *instruction = &program->instructions[i];
        tr_launch launch = {.run = &run, .failed = &failed};
        for (int k = 0; k < instruction->desc.in_count; k++) {
            launch.in[k] = resolve(&bases, &instruction->in[k]);
        }
        for (int k = 0; k < instruction->desc.out_count; k++) {
            launch.out[k] = resolve_result(&bases, &instruction->out[k]);
            launch.accumulate |= (uint32_t)tr__step_adds(step, instruction, k) << k;
        }
        launch.workspace = bases.place[TR_PLACE_TEMP]
                               ? bases.place[TR_PLACE_TEMP] + instruction->workspace
                               : NULL;
        instruction->kernel->launch(&instruction->desc, instruction->state, &launch);
        if (watched) {
            tr__note_finite(work, step, i, &instruction->desc, &launch);
        }
    }
    return failed == TR_OK ? TR_OK : fail_step(work, step, failed);
}
