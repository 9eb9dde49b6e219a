#include "ops/optimizer.h"

tr_update_function tr__optimizer_choose(const tr_optimizer *optimizer, int isa) {
    for (int i = isa; i >= 0; i--) {
        if (i < TR_ISA_COUNT && optimizer->cpu[i]) {
            return optimizer->cpu[i];
        }
    }
    return optimizer->reference;
}

tr_direct_function tr__optimizer_choose_direct(const tr_optimizer *optimizer, int isa) {
    const tr_adaptation *adaptation = optimizer->adaptation;
    for (int i = isa; adaptation && i >= 0; i--) {
        if (i < TR_ISA_COUNT && adaptation->cpu[i]) {
            return adaptation->cpu[i];
        }
    }
    return adaptation ? adaptation->reference : NULL;
}
