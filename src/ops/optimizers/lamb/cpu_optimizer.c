#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/lamb/lamb.h"

tr_update_kernel TR_ISA_KERNELS(tr__lamb_cpu);
tr_direct_kernel TR_ISA_KERNELS(tr__lamb_direct_cpu);

const tr_cpu_optimizer tr__cpu_optimizer_lamb = {
    .optimizer = &tr__optimizer_lamb,
    .update = TR_ISA_TABLE(tr__lamb_cpu),
    .direct = TR_ISA_TABLE(tr__lamb_direct_cpu),
};
