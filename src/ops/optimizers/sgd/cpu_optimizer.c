#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/sgd/sgd.h"

tr_update_kernel TR_ISA_KERNELS(tr__sgd_cpu);

const tr_cpu_optimizer tr__cpu_optimizer_sgd = {
    .optimizer = &tr__optimizer_sgd,
    .update = TR_ISA_TABLE(tr__sgd_cpu),
};
