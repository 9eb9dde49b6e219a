#include "ops/kernel.h"

#include "backend/cpu/half.h"

_Static_assert((int)TR_OP_ISAS == (int)TR_ISA_COUNT,
               "tr_op.cpu_half has a column each");

static const tr_kernel *best(const tr_kernel *const *table, const tr_op_desc *desc) {
    for (int isa = desc->isa; table && isa >= 0; isa--) {
        if (table[isa] && table[isa]->supports(desc)) {
            return table[isa];
        }
    }
    return NULL;
}

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

const tr_kernel *tr__kernel_choose(const tr_op_desc *desc) {
    const tr_op *op = desc->op;
    const tr_kernel *kernel = NULL;
    if (!has_halves(desc)) {
        kernel = best(op->cpu, desc);
        return kernel                                           ? kernel
               : op->reference && op->reference->supports(desc) ? op->reference
                                                                : NULL;
    }
    for (int half = 0; half < TR_OP_HALVES && op->cpu_half && !kernel; half++) {
        kernel = best(op->cpu_half[half], desc);
    }
    return kernel ? kernel : tr__widened.supports(desc) ? &tr__widened : NULL;
}
