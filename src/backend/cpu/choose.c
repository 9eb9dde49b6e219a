// Which kernel runs an op on the CPU: of 16-bit operands by those for their format, or
// on copies in f32.
#include "backend/cpu/kernels.h"

#include "backend/cpu/half.h"

static bool has_halves(const tr_op_desc *desc) {
    bool has = false;
    for (int i = 0; i < desc->in_count; i++) {
        has = has || tr__dtype_is_half(desc->in[i].dtype);
    }
    for (int i = 0; i < desc->out_count; i++) {
        has = has || tr__dtype_is_half(desc->out[i].dtype);
    }
    return has;
}

static const tr_kernel *
best_half(const tr_kernel *const table[TR_CPU_HALVES][TR_ISA_COUNT],
          const tr_op_desc *desc) {
    const tr_kernel *kernel = NULL;
    for (int half = 0; half < TR_CPU_HALVES && !kernel; half++) {
        kernel = tr__cpu_kernel_of(table[half], desc);
    }
    return kernel;
}

static const tr_kernel *of_halves(const tr_op_desc *desc) {
    const tr_cpu_kernels *row = tr__cpu_kernels_of(desc->op);
    const tr_kernel *kernel = NULL;
    if (row && desc->inference) {
        kernel = best_half(row->asked_half, desc);
    }
    kernel = row && !kernel ? best_half(row->half, desc) : kernel;
    return kernel ? kernel : tr__widened.supports(desc) ? &tr__widened : NULL;
}

const tr_kernel *tr__cpu_kernel(const tr_op_desc *desc) {
    return has_halves(desc) ? of_halves(desc) : tr__cpu_kernel_f32(desc);
}
