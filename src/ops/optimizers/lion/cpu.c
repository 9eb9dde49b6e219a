#include "backend/cpu/isa.h"
#include "ops/optimizers/cpu_optimizer_blocks.h"
#include "ops/optimizers/lion/lion.h"

void TR_ISA_NAME(tr__lion_cpu)(const tr_hyper *hyper, const tr_update *update);

// One element costs as much as this many moved ones.
enum { WEIGHT = 5 };

typedef struct numbers {
    float grad_scale, keep, beta1, g_share, beta2, m_rate, lr;
} numbers;

static numbers round_numbers(tr_lion_numbers k) {
    return (numbers){
        .grad_scale = (float)k.grad_scale,
        .keep = (float)k.keep,
        .beta1 = (float)k.beta1,
        .g_share = (float)k.g_share,
        .beta2 = (float)k.beta2,
        .m_rate = (float)k.m_rate,
        .lr = (float)k.lr,
    };
}

__attribute__((noinline)) static void update_block(const void *k, float *restrict p,
                                                   const float *restrict g,
                                                   float *const *state) {
    float *restrict m = state[0];
    const numbers c = *(const numbers *)k;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i];
        float toward = c.beta1 * m[i] + c.g_share * grad;
        float step = toward > 0 ? c.lr : toward < 0 ? -c.lr : toward;
        p[i] = c.keep * p[i] - step;
        m[i] = c.beta2 * m[i] + c.m_rate * grad;
    }
}

void TR_ISA_NAME(tr__lion_cpu)(const tr_hyper *hyper, const tr_update *update) {
    numbers k = round_numbers(tr__lion_numbers(hyper, update));
    tr__update_all(update, 1, WEIGHT, update_block, &k);
}
