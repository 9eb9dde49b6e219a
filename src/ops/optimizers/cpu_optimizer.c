#include "ops/optimizers/cpu_optimizer.h"

const tr_cpu_optimizer *tr__cpu_optimizer_of(const tr_optimizer *optimizer) {
    size_t i = 0;
    while (tr__cpu_optimizers[i] && tr__cpu_optimizers[i]->optimizer != optimizer) {
        i++;
    }
    return tr__cpu_optimizers[i];
}

tr_update_kernel *tr__optimizer_choose(const tr_optimizer *optimizer, int level) {
    const tr_cpu_optimizer *row = tr__cpu_optimizer_of(optimizer);
    for (int i = level; row && i >= 0; i--) {
        if (row->update[i]) {
            return row->update[i];
        }
    }
    return optimizer->reference;
}

tr_direct_kernel *tr__optimizer_choose_direct(const tr_optimizer *optimizer,
                                              int level) {
    const tr_cpu_optimizer *row = tr__cpu_optimizer_of(optimizer);
    for (int i = level; row && i >= 0; i--) {
        if (row->direct[i]) {
            return row->direct[i];
        }
    }
    return optimizer->adaptation ? optimizer->adaptation->reference : NULL;
}
