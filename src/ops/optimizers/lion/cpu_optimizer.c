#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/lion/lion.h"

tr_update_kernel TR_ISA_KERNELS(tr__lion_cpu);

const tr_cpu_optimizer tr__cpu_optimizer_lion = {
    .optimizer = &tr__optimizer_lion,
    .update = TR_ISA_TABLE(tr__lion_cpu),
};
