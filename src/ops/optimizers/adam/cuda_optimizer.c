#include "backend/cuda/kernels.h"
#include "ops/optimizers/adam/adam.h"
#include "ops/optimizers/adam/cuda.h"
#include "ops/optimizers/state_types.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_adam;
extern tr_cuda_function tr__cuda_function_adam_update, tr__cuda_function_adam_packed;

static tr_cuda_packed_state state_of(const tr_update *u, int s) {
    return (tr_cuda_packed_state){.first = u->state[s], .type = u->type[s]};
}

static size_t packed_args(const tr_update *u, const tr_cuda_adam *k,
                          const tr_cuda_gradients *grads,
                          tr_cuda_adam_packed_args *to) {
    *to = (tr_cuda_adam_packed_args){.k = *k,
                                     .p = u->param,
                                     .g = *grads,
                                     .m = state_of(u, 0),
                                     .v = state_of(u, 1),
                                     .count = u->count};
    tr__dynamic_map_make(true, to->maps.value[0]);
    tr__dynamic_map_make(false, to->maps.value[1]);
    return sizeof *to;
}

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const struct tr_cuda_norms *norms,
                   void *to) {
    (void)norms;
    tr_adam_numbers n = tr__adam_numbers(hyper, u);
    const tr_cuda_adam k = {.grad_scale = (float)n.grad_scale,
                            .l2 = (float)n.l2,
                            .keep = (float)n.keep,
                            .m_rate = (float)n.m_rate,
                            .beta2 = (float)n.beta2,
                            .v_rate = (float)n.v_rate,
                            .step = (float)n.step,
                            .over_root_bias2 = (float)(1 / n.root_bias2),
                            .eps = (float)n.eps};
    if (tr__update_is_packed(u)) {
        return packed_args(u, &k, grads, to);
    }
    *(tr_cuda_adam_args *)to = (tr_cuda_adam_args){.k = k,
                                                   .p = u->param,
                                                   .g = *grads,
                                                   .m = u->state[0],
                                                   .v = u->state[1],
                                                   .count = u->count};
    return sizeof(tr_cuda_adam_args);
}

_Static_assert(sizeof(tr_cuda_adam_packed_args) <= TR_CUDA_OPTIMIZER_ARGS, "it fits");

const tr_cuda_optimizer tr__cuda_optimizer_adam = {
    .optimizer = &tr__optimizer_adam,
    .args = args,
    .update = &tr__cuda_function_adam_update,
    .packed = &tr__cuda_function_adam_packed};
