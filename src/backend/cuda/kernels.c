#include "backend/cuda/kernels.h"

#include "backend/cuda/driver.h"

const tr_kernel *tr__cuda_kernel(const tr_op_desc *desc) {
    for (size_t i = 0; tr__cuda_kernel_lists[i]; i++) {
        for (const tr_cuda_kernels *row = tr__cuda_kernel_lists[i]; row->op; row++) {
            if (row->op == desc->op && row->kernel->supports(desc)) {
                return row->kernel;
            }
        }
    }
    return NULL;
}

tr_cuda_update *tr__cuda_update_by(const struct tr_optimizer *optimizer) {
    for (size_t i = 0; tr__cuda_optimizers[i]; i++) {
        if (tr__cuda_optimizers[i]->optimizer == optimizer) {
            return tr__cuda_optimizers[i]->update;
        }
    }
    return NULL;
}

// The launch's failure is the first.
static void note(const tr_launch *launch, int error) {
    if (error != 0 && launch->failed && *launch->failed == TR_OK) {
        *launch->failed = TR_INTERNAL;
    }
}

void tr__cuda_multiply(const tr_launch *launch, const tr_cuda_product *product) {
    int error = tr__cuda_driver()->multiply(product, launch->queue);
    note(launch, error);
}

void tr__cuda_clear(const tr_launch *launch, void *memory, int64_t bytes) {
    int error = tr__cuda_driver()->clear(memory, (size_t)bytes, launch->queue);
    note(launch, error);
}
