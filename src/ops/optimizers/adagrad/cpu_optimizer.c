#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/adagrad/adagrad.h"

tr_update_kernel TR_ISA_KERNELS(tr__adagrad_cpu);

const tr_cpu_optimizer tr__cpu_optimizer_adagrad = {
    .optimizer = &tr__optimizer_adagrad,
    .update = TR_ISA_TABLE(tr__adagrad_cpu),
};
