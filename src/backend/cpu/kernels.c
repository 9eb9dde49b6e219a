#include "backend/cpu/kernels.h"

#include <pthread.h>

// Rows by the address of their op: a hash table, filled once.
enum { PLACES = 512, ROWS_MOST = PLACES / 2 };
static pthread_once_t filled = PTHREAD_ONCE_INIT;
static const tr_cpu_kernels *places[PLACES];

// Where the search for an op begins: ops are constants, some hundred bytes apart.
static size_t first_place(const tr_op *op) {
    return (uintptr_t)op / sizeof(void *) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

// The place that has the op's row, or that is free for it.
static const tr_cpu_kernels **place_of(const tr_op *op) {
    size_t at = first_place(op) % PLACES;
    while (places[at] && places[at]->op != op) {
        at = (at + 1) % PLACES;
    }
    return &places[at];
}

static void fill(void) {
    int rows = 0;
    for (size_t i = 0; tr__cpu_kernel_lists[i]; i++) {
        for (const tr_cpu_kernels *row = tr__cpu_kernel_lists[i];
             row->op && rows < ROWS_MOST; row++, rows++) {
            *place_of(row->op) = row;
        }
    }
}

const tr_cpu_kernels *tr__cpu_kernels_of(const tr_op *op) {
    pthread_once(&filled, fill);
    return *place_of(op);
}

const tr_kernel *tr__cpu_kernel_of(const tr_kernel *const table[TR_ISA_COUNT],
                                   const tr_op_desc *desc) {
    for (int isa = desc->target.level; isa >= 0; isa--) {
        if (table[isa] && table[isa]->supports(desc)) {
            return table[isa];
        }
    }
    return NULL;
}

const tr_kernel *tr__cpu_kernel_f32(const tr_op_desc *desc) {
    const tr_cpu_kernels *row = tr__cpu_kernels_of(desc->op);
    const tr_kernel *reference = desc->op->reference, *kernel = NULL;
    if (row && desc->inference) {
        kernel = tr__cpu_kernel_of(row->asked_f32, desc);
    }
    kernel = row && !kernel ? tr__cpu_kernel_of(row->f32, desc) : kernel;
    return kernel ? kernel : reference && reference->supports(desc) ? reference : NULL;
}
