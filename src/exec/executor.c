#include "exec/executor.h"

#include "base/memory.h"
#include "ops/norm/norm.h"

#include <string.h>

// A micro-batch that is at work: its slot of the data ring.
typedef struct tr_micro {
    const char *data;
    uint64_t sample; // global index of its first row
} tr_micro;

struct tr_executor {
    const tr_plan *plan;
    char *device; // start of the arena
    tr_feed *feed[2];
    tr_micro *micros; // [g]
    tr_norm_function norm;
    double norm_squares;
    tr_update_order order;
    tr_update_function update;
};

typedef struct tr_work {
    tr_executor *ex;
    tr_sequence_kind sequence;
    tr_run_context run;
    tr_error *err;
} tr_work;

static void *memory(const tr_executor *ex, int buffer) {
    return buffer < 0 ? NULL : ex->device + ex->plan->buffers[buffer].offset;
}

static int ring_of(tr_sequence_kind sequence) {
    return sequence == TR_SEQUENCE_TRAIN ? 0 : 1;
}

// ---- unit programs
// -------------------------------------------------------------------

typedef struct tr_bases {
    char *place[TR_PLACE_COUNT];
    char *param[TR_UNIT_FLATS_MAX], *grad[TR_UNIT_FLATS_MAX];
} tr_bases;

static void bind(const tr_work *work, const tr_plan_step *step, tr_bases *bases) {
    static const tr_place places[TR_SLOTS] = {
        [TR_SLOT_INPUT] = TR_PLACE_INPUT,
        [TR_SLOT_OUTPUT] = TR_PLACE_OUTPUT,
        [TR_SLOT_INPUT_GRAD] = TR_PLACE_INPUT_GRAD,
        [TR_SLOT_OUTPUT_GRAD] = TR_PLACE_OUTPUT_GRAD,
        [TR_SLOT_SAVED] = TR_PLACE_SAVED,
        [TR_SLOT_WAVE] = TR_PLACE_WAVE,
        [TR_SLOT_WAVE_GRAD] = TR_PLACE_WAVE_GRAD,
        [TR_SLOT_TEMP] = TR_PLACE_TEMP,
    };
    const tr_executor *ex = work->ex;
    const tr_plan_unit *unit = &ex->plan->units[step->unit];
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        bases->place[places[slot]] = memory(ex, step->buffer[slot]);
    }
    bases->place[TR_PLACE_DATA] = (char *)ex->micros[step->micro].data;
    bases->place[TR_PLACE_SUMS] = memory(ex, ex->plan->sums[ring_of(work->sequence)]);
    bases->place[TR_PLACE_ANSWER] = memory(ex, ex->plan->answer);
    for (int f = 0; f < unit->program->flat_count; f++) {
        const tr_flat *flat = &ex->plan->flats[unit->flats[f]];
        bases->param[f] = memory(ex, flat->param);
        bases->grad[f] = memory(ex, flat->grad);
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

// Bits of `first` results that are to be added to, because another micro-batch or unit
// has written the gradient before.
static uint32_t later(const tr_instruction *instruction, const tr_plan_step *step) {
    uint32_t adds = 0;
    for (int i = 0; i < instruction->desc.out_count; i++) {
        const tr_operand *out = &instruction->out[i];
        bool fresh = out->place == TR_PLACE_PARAM_GRAD ? step->fresh >> out->flat & 1
                                                       : step->fresh_wave;
        if ((instruction->first >> i & 1) && !fresh) {
            adds |= UINT32_C(1) << i;
        }
    }
    return adds;
}

static tr_status run_program(const tr_work *work, const tr_plan_step *step) {
    const tr_program *program = tr__step_program(work->ex->plan, step, work->sequence);
    tr_run_context run = work->run;
    tr_bases bases = {0};
    bind(work, step, &bases);
    run.unit = (uint32_t)step->unit;
    run.sample = work->ex->micros[step->micro].sample;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *instruction = &program->instructions[i];
        tr_launch launch = {.run = &run};
        for (int k = 0; k < instruction->desc.in_count; k++) {
            launch.in[k] = resolve(&bases, &instruction->in[k]);
        }
        for (int k = 0; k < instruction->desc.out_count; k++) {
            launch.out[k] = resolve(&bases, &instruction->out[k]);
        }
        launch.accumulate = instruction->accumulate | later(instruction, step);
        launch.workspace = bases.place[TR_PLACE_TEMP]
                               ? bases.place[TR_PLACE_TEMP] + instruction->workspace
                               : NULL;
        instruction->kernel->launch(&instruction->desc, instruction->state, &launch);
    }
    return TR_OK;
}

// ---- the other kinds of steps
// --------------------------------------------------------

static tr_status run_load(const tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    tr_feed_micro slot;
    tr_status status =
        tr__feed_acquire(ex->feed[ring_of(work->sequence)], &slot, work->err);
    if (status == TR_OK) {
        ex->micros[step->micro] = (tr_micro){slot.input, (uint64_t)slot.sample};
    }
    return status;
}

static tr_status run_unload(const tr_work *work, const tr_plan_step *step) {
    (void)step;
    tr__feed_release(work->ex->feed[ring_of(work->sequence)]);
    return TR_OK;
}

static tr_status run_clear(const tr_work *work, const tr_plan_step *step) {
    (void)step;
    memset(tr__executor_sums(work->ex, ring_of(work->sequence)), 0,
           TR_SUMS * sizeof(double));
    return TR_OK;
}

// One rank holds all that its wave tensors add up, so there is nothing to merge.
static tr_status run_combine(const tr_work *work, const tr_plan_step *step) {
    (void)work;
    (void)step;
    return TR_OK;
}

static tr_status run_norm(const tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    double *partials = memory(ex, step->buffer[TR_SLOT_TEMP]);
    int64_t blocks = 0;
    for (size_t f = 0; f < ex->plan->flat_count; f++) {
        const tr_flat *flat = &ex->plan->flats[f];
        ex->norm(memory(ex, flat->grad), flat->count, partials + blocks);
        blocks += (flat->count + TR_NORM_BLOCK - 1) / TR_NORM_BLOCK;
    }
    ex->norm_squares = tr__norm_sum(partials, blocks);
    return TR_OK;
}

static tr_status run_update(const tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    const tr_update_order *order = &ex->order;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    for (size_t i = 0; i < order->range_count; i++) {
        const tr_update_range *range = &order->ranges[i];
        if (range->flat != step->unit) {
            continue;
        }
        tr_update update = {
            .param = (float *)memory(ex, flat->param) + range->offset,
            .grad = (const float *)memory(ex, flat->grad) + range->offset,
            .count = range->count,
            .grad_scale = order->grad_scale,
            .number = order->number,
            .beta1_power = order->power[range->group][0],
            .beta2_power = order->power[range->group][1],
        };
        for (int s = 0; s < ex->plan->request.optimizer_states; s++) {
            update.state[s] = (float *)memory(ex, flat->state[s]) + range->offset;
        }
        ex->update(&order->hyper[range->group], &update);
    }
    return TR_OK;
}

static tr_status (*const run_kind[TR_STEP_KINDS])(const tr_work *,
                                                  const tr_plan_step *) = {
    [TR_STEP_load] = run_load,        [TR_STEP_forward] = run_program,
    [TR_STEP_combine] = run_combine,  [TR_STEP_recompute] = run_program,
    [TR_STEP_backward] = run_program, [TR_STEP_unload] = run_unload,
    [TR_STEP_clear] = run_clear,      [TR_STEP_norm] = run_norm,
    [TR_STEP_update] = run_update,
};

tr_status tr__executor_run(tr_executor *executor, tr_sequence_kind sequence,
                           size_t first, size_t end, const tr_run_context *context,
                           bool (*stop)(void *user), void *user, tr_error *err) {
    const tr_sequence *steps = &executor->plan->sequences[sequence];
    tr_work work = {executor, sequence, *context, err};
    for (size_t i = first; i < end; i++) {
        if (stop && stop(user)) {
            return tr_fail(err, TR_INTERRUPTED, "interrupted");
        }
        const tr_plan_step *step = &steps->steps[i];
        tr_status status = run_kind[step->kind](&work, step);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

// ---- set-up
// --------------------------------------------------------------------------

tr_status tr__executor_create(const tr_plan *plan, tr_arena *device, tr_executor **out,
                              tr_error *err) {
    tr_executor *ex = tr__calloc(1, sizeof *ex);
    size_t micros = (size_t)plan->request.accumulation_steps;
    if (ex) {
        ex->micros = tr__calloc(micros, sizeof *ex->micros);
    }
    if (!ex || !ex->micros) {
        tr__executor_destroy(ex);
        return tr_fail(err, TR_MEMORY, "no memory for the executor");
    }
    ex->plan = plan;
    ex->norm = plan->request.reference_kernels ? tr__norm_reference
                                               : tr__norm_choose(plan->isa);
    // Every buffer is viewed once: this is what raises the arena's high-water mark to
    // what the plan uses, and what would end the program if the plan lied.
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        tr__arena_view(device, (size_t)buffer->offset, (size_t)buffer->bytes);
    }
    ex->device = tr__arena_view(device, 0, 0);
    ex->micros[0].data = memory(ex, plan->data_ring[1]); // where inference is asked
    *out = ex;
    return TR_OK;
}

void tr__executor_destroy(tr_executor *executor) {
    if (executor) {
        tr__free(executor->micros);
        tr__free(executor);
    }
}

void tr__executor_feed(tr_executor *executor, int ring, tr_feed *feed) {
    executor->feed[ring] = feed;
}

void *tr__executor_ring(tr_executor *executor, int ring) {
    return memory(executor, executor->plan->data_ring[ring]);
}

double *tr__executor_sums(tr_executor *executor, int ring) {
    return memory(executor, executor->plan->sums[ring]);
}

double tr__executor_norm_squares(const tr_executor *executor) {
    return executor->norm_squares;
}

void tr__executor_order(tr_executor *executor, const tr_update_order *order) {
    const tr_plan *plan = executor->plan;
    executor->order = *order;
    executor->update = plan->request.reference_kernels
                           ? order->optimizer->reference
                           : tr__optimizer_choose(order->optimizer, plan->isa);
}

float *tr__executor_param(tr_executor *executor, int param, int state) {
    const tr_plan_param *info = &executor->plan->params[param];
    const tr_flat *flat = &executor->plan->flats[info->flat];
    return (float *)memory(executor, state < 0 ? flat->param : flat->state[state]) +
           info->offset;
}

float *tr__executor_grad(tr_executor *executor, int param) {
    const tr_plan_param *info = &executor->plan->params[param];
    const tr_flat *flat = &executor->plan->flats[info->flat];
    return flat->grad < 0 ? NULL : (float *)memory(executor, flat->grad) + info->offset;
}

tr_piece tr__executor_held(tr_executor *executor, int param, int state) {
    return (tr_piece){tr__executor_param(executor, param, state), 0,
                      executor->plan->params[param].count};
}

// One rank writes all that it holds.
tr_piece tr__executor_own(tr_executor *executor, int param, int state) {
    return tr__executor_held(executor, param, state);
}

const float *tr__executor_answer(tr_executor *executor) {
    return memory(executor, executor->plan->answer);
}
