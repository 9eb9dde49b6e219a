#include "backend/cpu/half.h"
#include "backend/cpu/kernels.h"
#include "base/memory.h"

enum { ALIGNMENT = 64, OPERANDS = TR_OP_IN_MAX + TR_OP_OUT_MAX };

// The op in f32, and where the copies of its operands lie in the workspace: inputs,
// then results; -1: no copy.
typedef struct widened {
    tr_op_desc desc;
    const tr_kernel *kernel;
    void *state;
    int64_t offset[OPERANDS];
    int64_t bytes; // of all copies
} widened;

static tr_tensor_desc wide(tr_tensor_desc tensor) {
    tensor.dtype = tr__dtype_is_half(tensor.dtype) ? TR_F32 : tensor.dtype;
    return tensor;
}

static tr_op_desc wide_desc(const tr_op_desc *desc) {
    tr_op_desc same = *desc;
    same.packs = false; // nobody keeps a copy
    for (int i = 0; i < desc->in_count; i++) {
        same.in[i] = wide(desc->in[i]);
    }
    for (int i = 0; i < desc->out_count; i++) {
        same.out[i] = wide(desc->out[i]);
    }
    return same;
}

static bool supports(const tr_op_desc *desc) {
    tr_op_desc same = wide_desc(desc);
    return tr__cpu_kernel_f32(&same) != NULL;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr_op_desc same = wide_desc(desc);
    const tr_kernel *kernel = tr__cpu_kernel_f32(&same);
    *out = (tr_cost){0};
    if (kernel && kernel->cost) {
        kernel->cost(&same, out);
    }
}

static bool is_copied(const tr_op_desc *desc, int operand) {
    bool input = operand < TR_OP_IN_MAX;
    int i = input ? operand : operand - TR_OP_IN_MAX;
    if (i >= (input ? desc->in_count : desc->out_count) ||
        (input && (desc->op->shape_only >> i & 1))) {
        return false;
    }
    return tr__dtype_is_half(input ? desc->in[i].dtype : desc->out[i].dtype);
}

static int64_t count_of(const tr_op_desc *desc, int operand) {
    return tr_shape_count(operand < TR_OP_IN_MAX
                              ? desc->in[operand].shape
                              : desc->out[operand - TR_OP_IN_MAX].shape);
}

static void release(void *state) {
    widened *w = state;
    if (w && w->kernel->release) {
        w->kernel->release(w->state);
    }
    tr__free(w);
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    widened *w = tr__calloc(1, sizeof *w);
    *state = w;
    if (!w) {
        return tr_fail(err, TR_MEMORY, "no memory to prepare %s", desc->op->name);
    }
    w->desc = wide_desc(desc);
    w->kernel = tr__cpu_kernel_f32(&w->desc);
    for (int k = 0; k < OPERANDS; k++) {
        w->offset[k] = -1;
        if (is_copied(desc, k)) {
            int64_t bytes = count_of(desc, k) * (int64_t)sizeof(float);
            w->offset[k] = w->bytes;
            w->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    }
    tr_status status =
        w->kernel->prepare ? w->kernel->prepare(&w->desc, &w->state, err) : TR_OK;
    if (status != TR_OK) {
        tr__free(w);
        *state = NULL;
    }
    return status;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    const widened *w = state;
    (void)desc;
    size_t own = w->kernel->workspace ? w->kernel->workspace(&w->desc, w->state) : 0;
    return (size_t)w->bytes + own;
}

static float *copy_at(const widened *w, const tr_launch *launch, int operand) {
    return (float *)(void *)((char *)launch->workspace + w->offset[operand]);
}

// Operands become f32: inputs, and results that are added to.
static void widen_all(const tr_op_desc *desc, const widened *w, const tr_launch *launch,
                      tr_launch *wide_launch) {
    for (int i = 0; i < desc->in_count; i++) {
        if (w->offset[i] >= 0 && launch->in[i]) {
            float *copy = copy_at(w, launch, i);
            tr__half_widen(desc->in[i].dtype, launch->in[i], count_of(desc, i),
                           desc->target.workers, copy);
            wide_launch->in[i] = copy;
        }
    }
    for (int i = 0; i < desc->out_count; i++) {
        int k = TR_OP_IN_MAX + i;
        if (w->offset[k] >= 0 && launch->out[i]) {
            float *copy = copy_at(w, launch, k);
            if (launch->accumulate >> i & 1) {
                tr__half_widen(desc->out[i].dtype, launch->out[i], count_of(desc, k),
                               desc->target.workers, copy);
            }
            wide_launch->out[i] = copy;
        }
    }
}

static void launch_widened(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    const widened *w = state;
    tr_launch same = *launch;
    widen_all(desc, w, launch, &same);
    same.workspace = (char *)launch->workspace + w->bytes;
    w->kernel->launch(&w->desc, w->state, &same);
    for (int i = 0; i < desc->out_count; i++) {
        int k = TR_OP_IN_MAX + i;
        if (w->offset[k] >= 0 && launch->out[i]) {
            tr__half_narrow(desc->out[i].dtype, same.out[i], count_of(desc, k),
                            desc->target.workers, launch->out[i]);
        }
    }
}

const tr_kernel tr__widened = {
    .name = "widened",
    .supports = supports,
    .cost = cost,
    .prepare = prepare,
    .workspace = workspace,
    .launch = launch_widened,
    .release = release,
};
