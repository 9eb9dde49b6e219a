// Steps that run a unit's program: its operands bound to the step's buffers, its
// kernels launched one after the other.
#include "exec/walk.h"
#include "plan/units/finite.h"

// The blocks of a program [program->block_count]: those of the step's operands, but for
// the micro-batch, which lies where the reading thread has put it.
typedef struct tr_bases {
    char *block[TR_PROGRAM_BLOCKS_MAX];
    char *workspace;
} tr_bases;

static void bind(const tr_executor *ex, const tr_launch_task *task,
                 const tr_program *program, tr_bases *bases) {
    for (size_t i = 0; i < program->block_count; i++) {
        tr_place place = program->blocks[i].place;
        bases->block[i] =
            place == TR_PLACE_DATA
                ? (char *)task->micro.data
                : tr__operand_address(ex, tr__step_operand(ex->plan, task->step, i));
        bases->workspace = place == TR_PLACE_TEMP ? bases->block[i] : bases->workspace;
    }
}

static char *resolve(const tr_bases *bases, const tr_operand *operand) {
    return operand->block < 0 ? NULL : bases->block[operand->block] + operand->offset;
}

static tr_launch launch_of(const tr_executor *ex, const tr_plan_step *step,
                           const tr_instruction *at, const tr_bases *bases) {
    tr_launch launch = {.workspace = NULL};
    for (int k = 0; k < at->desc.in_count; k++) {
        launch.in[k] = resolve(bases, &at->in[k]);
    }
    for (int k = 0; k < at->desc.out_count; k++) {
        launch.out[k] = resolve(bases, &at->out[k]);
        launch.accumulate |= (uint32_t)tr__step_adds(ex->plan, step, at, k) << k;
    }
    if (bases->workspace) {
        launch.workspace = bases->workspace + at->workspace;
        launch.shared = bases->workspace + (at - at->shared)->workspace;
    }
    launch.packed = resolve(bases, &at->packed);
    launch.is_packed = launch.packed && !tr__step_packs(ex->plan, step, at);
    return launch;
}

// Where the step's program is in the step of all ranks, as one number.
static double place_of(const tr_plan *plan, const tr_plan_step *step) {
    const tr_plan_request *r = &plan->request;
    int64_t units = plan->unit_count,
            segments = plan->units[step->unit].program->segments;
    bool back = tr__step_runs(step, TR_VARIANT_BACKWARD);
    tr_step_place place = {
        .micro = tr__data_rank(r) * r->accumulation_steps + step->micro,
        .visit = back ? 2 * units - 1 - step->unit : step->unit,
        .segment = back ? segments - 1 - step->segment : step->segment,
        .saves_nothing = tr__step_runs(step, TR_VARIANT_SAVES_NOTHING)};
    return tr__place_of_launch(&place, units);
}

static tr_run_context context_of(const tr_plan *plan, const tr_launch_task *task) {
    tr_run_context run = task->run;
    run.unit = (uint32_t)task->step->unit;
    run.place = place_of(plan, task->step);
    run.rows = task->micro.rows;
    run.sample = task->micro.sample;
    return run;
}

tr_status tr__launch_program(const tr_executor *ex, tr_device_queue *queue,
                             const tr_launch_task *task, const tr_program *program,
                             tr_error *err) {
    const tr_plan_step *step = task->step;
    const char *subject = tr__step_subject(ex->plan, step);
    tr_run_context run = context_of(ex->plan, task);
    tr_bases bases = {.workspace = NULL};
    bind(ex, task, program, &bases);
    tr_status failed = TR_OK;
    for (size_t i = 0; i < program->count && failed == TR_OK; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_launch launch = launch_of(ex, step, at, &bases);
        launch.run = &run;
        launch.failed = &failed;
        tr_device_work work = {at->kernel, &at->desc, at->state, &launch, subject};
        tr__launch_kernel(ex, queue, &work);
    }
    return failed == TR_OK ? TR_OK : tr__backend_fail_launch(failed, subject, err);
}
