#include "backend/cuda/kernels.h"
#include "ops/optimizers/muon/cuda.h"
#include "ops/optimizers/muon/muon.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_muon;
extern tr_cuda_function tr__cuda_function_muon_direction;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const struct tr_cuda_norms *norms,
                   void *to) {
    const tr_muon_hyper own = tr__muon_hyper(hyper);
    (void)norms;
    *(tr_cuda_muon_args *)to = (tr_cuda_muon_args){.g = *grads,
                                                   .buffer = u->state[0],
                                                   .direction = u->param,
                                                   .count = u->count,
                                                   .grad_scale = (float)u->grad_scale,
                                                   .momentum = (float)own.momentum,
                                                   .rate = (float)(1 - own.momentum),
                                                   .nesterov = own.nesterov};
    return sizeof(tr_cuda_muon_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_muon = {
    .optimizer = &tr__optimizer_muon,
    .args = args,
    .direct = &tr__cuda_function_muon_direction};
