#include "backend/cpu/isa.h"
#include "ops/optimizers/adam/adam.h"
#include "ops/optimizers/cpu_optimizer_blocks.h"

void TR_ISA_NAME(tr__adam_cpu)(const tr_hyper *hyper, const tr_update *update);

// One element costs as much as this many moved ones.
enum { WEIGHT = 7 };

typedef struct numbers {
    float grad_scale, l2, keep, m_rate, beta2, v_rate, step, over_root_bias2, eps;
} numbers;

static numbers round_numbers(tr_adam_numbers k) {
    return (numbers){
        .grad_scale = (float)k.grad_scale,
        .l2 = (float)k.l2,
        .keep = (float)k.keep,
        .m_rate = (float)k.m_rate,
        .beta2 = (float)k.beta2,
        .v_rate = (float)k.v_rate,
        .step = (float)k.step,
        .over_root_bias2 = (float)(1 / k.root_bias2),
        .eps = (float)k.eps,
    };
}

__attribute__((noinline)) static void update_block(const void *k, float *restrict p,
                                                   const float *restrict g,
                                                   float *const *state) {
    float *restrict m = state[0];
    float *restrict v = state[1];
    const numbers c = *(const numbers *)k;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i] + c.l2 * p[i];
        float mean = m[i] + c.m_rate * (grad - m[i]);
        float square = c.beta2 * v[i] + c.v_rate * grad * grad;
        float denominator = sqrtf(square) * c.over_root_bias2 + c.eps;
        p[i] = c.keep * p[i] - c.step * mean / denominator;
        m[i] = mean;
        v[i] = square;
    }
}

void TR_ISA_NAME(tr__adam_cpu)(const tr_hyper *hyper, const tr_update *update) {
    numbers k = round_numbers(tr__adam_numbers(hyper, update));
    tr__update_all(update, 2, WEIGHT, update_block, &k);
}
