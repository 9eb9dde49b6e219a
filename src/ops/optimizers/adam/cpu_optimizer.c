#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/adam/adam.h"

tr_update_kernel TR_ISA_KERNELS(tr__adam_cpu);

const tr_cpu_optimizer tr__cpu_optimizer_adam = {
    .optimizer = &tr__optimizer_adam,
    .update = TR_ISA_TABLE(tr__adam_cpu),
};
