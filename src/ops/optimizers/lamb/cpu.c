#include "backend/cpu/isa.h"
#include "ops/optimizers/cpu_optimizer_blocks.h"
#include "ops/optimizers/lamb/lamb.h"

void TR_ISA_NAME(tr__lamb_cpu)(const tr_hyper *hyper, const tr_update *update);
void TR_ISA_NAME(tr__lamb_direct_cpu)(const tr_hyper *hyper, const tr_update *update,
                                      float *direction);

// One element costs as much as this many moved ones.
enum { WEIGHT = 7 };

typedef struct numbers {
    float grad_scale, m_rate, beta2, v_rate, m_scale, v_scale, eps, decay, step;
} numbers;

static numbers round_numbers(tr_lamb_numbers k) {
    return (numbers){
        .grad_scale = (float)k.grad_scale,
        .m_rate = (float)k.m_rate,
        .beta2 = (float)k.beta2,
        .v_rate = (float)k.v_rate,
        .m_scale = (float)k.m_scale,
        .v_scale = (float)k.v_scale,
        .eps = (float)k.eps,
        .decay = (float)k.decay,
        .step = (float)k.step,
    };
}

static inline float direction_of(const numbers *c, float p, float m, float v) {
    return c->m_scale * m / (c->v_scale * sqrtf(v) + c->eps) + c->decay * p;
}

__attribute__((noinline)) static void
direct_block(const void *k, const float *restrict p, const float *restrict g,
             float *const *state, float *restrict d) {
    float *restrict m = state[0];
    float *restrict v = state[1];
    const numbers c = *(const numbers *)k;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i];
        float mean = m[i] + c.m_rate * (grad - m[i]);
        float square = c.beta2 * v[i] + c.v_rate * grad * grad;
        d[i] = direction_of(&c, p[i], mean, square);
        m[i] = mean;
        v[i] = square;
    }
}

__attribute__((noinline)) static void update_block(const void *k, float *restrict p,
                                                   const float *restrict g,
                                                   float *const *state) {
    float *restrict m = state[0];
    float *restrict v = state[1];
    const numbers c = *(const numbers *)k;
    (void)g;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        p[i] = p[i] - c.step * direction_of(&c, p[i], m[i], v[i]);
    }
}

void TR_ISA_NAME(tr__lamb_direct_cpu)(const tr_hyper *hyper, const tr_update *update,
                                      float *direction) {
    numbers k = round_numbers(tr__lamb_numbers(hyper, update));
    tr__direct_all(update, 2, direct_block, &k, direction);
}

void TR_ISA_NAME(tr__lamb_cpu)(const tr_hyper *hyper, const tr_update *update) {
    numbers k = round_numbers(tr__lamb_numbers(hyper, update));
    tr__update_all(update, 2, WEIGHT, update_block, &k);
}
