#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/lars/lars.h"

tr_update_kernel TR_ISA_KERNELS(tr__lars_cpu);
tr_direct_kernel TR_ISA_KERNELS(tr__lars_direct_cpu);

const tr_cpu_optimizer tr__cpu_optimizer_lars = {
    .optimizer = &tr__optimizer_lars,
    .update = TR_ISA_TABLE(tr__lars_cpu),
    .direct = TR_ISA_TABLE(tr__lars_direct_cpu),
};
