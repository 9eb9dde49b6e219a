#include "backend/cuda/kernels.h"

// A function of the program's that works on the device, or values that come there.
static const tr_kernel *called_kernel(const tr_op_desc *desc) {
    const tr_kernel *kernel =
        desc->op->flags & TR_OP_CALLS ? desc->op->reference : NULL;
    return kernel && kernel->supports(desc) ? kernel : NULL;
}

const tr_kernel *tr__cuda_kernel(const tr_op_desc *desc) {
    for (size_t i = 0; tr__cuda_kernel_lists[i]; i++) {
        for (const tr_cuda_kernels *row = tr__cuda_kernel_lists[i]; row->op; row++) {
            if (row->op == desc->op && row->kernel->supports(desc)) {
                return row->kernel;
            }
        }
    }
    return called_kernel(desc);
}

const tr_cuda_optimizer *tr__cuda_optimizer_of(const struct tr_optimizer *optimizer) {
    size_t i = 0;
    while (tr__cuda_optimizers[i] && tr__cuda_optimizers[i]->optimizer != optimizer) {
        i++;
    }
    return tr__cuda_optimizers[i];
}
