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
static double *sums_of(const tr_executor *ex, const tr_launch_task *task) {
    const tr_plan *plan = ex->plan;
    return task->sequence == TR_SEQUENCE_TRAIN
               ? tr__own_statistics(ex) + plan->statistics.sums +
                     task->step->micro * TR_SUMS
               : tr__memory(ex, plan->sums);
}

static void bind(const tr_executor *ex, const tr_launch_task *task, tr_bases *bases) {
    const tr_plan_step *step = task->step;
    const tr_plan_unit *unit = &ex->plan->units[step->unit];
    for (int place = 0; place < TR_PLACE_COUNT; place++) {
        tr_slot slot = tr__place_slot((tr_place)place);
        bases->place[place] =
            slot < TR_SLOTS ? tr__memory(ex, step->buffer[slot]) : NULL;
    }
    bases->place[TR_PLACE_DATA] = (char *)task->micro.data;
    bases->place[TR_PLACE_SUMS] = (char *)sums_of(ex, task);
    bases->place[TR_PLACE_LOGITS] = tr__memory(ex, ex->plan->logits);
    bases->place[TR_PLACE_STATE] = tr__memory(ex, unit->states);
    bases->place[TR_PLACE_CACHE] = tr__memory(ex, unit->cache);
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

static tr_launch launch_of(const tr_plan_step *step, const tr_instruction *at,
                           const tr_bases *bases) {
    tr_launch launch = {.workspace = NULL};
    for (int k = 0; k < at->desc.in_count; k++) {
        launch.in[k] = resolve(bases, &at->in[k]);
    }
    for (int k = 0; k < at->desc.out_count; k++) {
        launch.out[k] = resolve_result(bases, &at->out[k]);
        launch.accumulate |= (uint32_t)tr__step_adds(step, at, k) << k;
    }
    if (bases->place[TR_PLACE_TEMP]) {
        launch.workspace = bases->place[TR_PLACE_TEMP] + at->workspace;
    }
    if (at->packed.place != TR_PLACE_NONE) {
        launch.packed = resolve(bases, &at->packed);
        launch.is_packed = !(step->writes & tr__operand_bit(&at->packed));
    }
    return launch;
}

static tr_run_context context_of(const tr_launch_task *task) {
    tr_run_context run = task->run;
    run.unit = (uint32_t)task->step->unit;
    run.rows = task->micro.rows;
    run.sample = task->micro.sample;
    return run;
}

tr_status tr__launch_program(const tr_executor *ex, tr_device_queue *queue,
                             const tr_launch_task *task, const tr_program *program,
                             tr_error *err) {
    const tr_plan_step *step = task->step;
    const char *subject = tr__step_subject(ex->plan, step);
    tr_run_context run = context_of(task);
    tr_bases bases = {0};
    bind(ex, task, &bases);
    if (tr__wave_parts(ex->plan, task->sequence) > 1) {
        bases.part = step->micro * ex->plan->units[step->unit].program->wave_bytes;
    }
    bool watched = tr__watches_finite(ex, task);
    tr_status failed = TR_OK;
    for (size_t i = 0; i < program->count && failed == TR_OK; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_launch launch = launch_of(step, at, &bases);
        launch.run = &run;
        launch.failed = &failed;
        tr_device_work work = {at->kernel, &at->desc, at->state, &launch, subject};
        tr__launch_kernel(ex, queue, &work);
        if (watched) {
            tr__note_finite(ex, queue, step, i, &at->desc, &launch);
        }
    }
    return failed == TR_OK ? TR_OK : tr__backend_fail_launch(failed, subject, err);
}
