#include "backend/cpu/isa.h"
#include "ops/optimizers/cpu_optimizer_blocks.h"
#include "ops/optimizers/lars/lars.h"

void TR_ISA_NAME(tr__lars_cpu)(const tr_hyper *hyper, const tr_update *update);
void TR_ISA_NAME(tr__lars_direct_cpu)(const tr_hyper *hyper, const tr_update *update,
                                      float *direction);

// One element costs as much as this many moved ones.
enum { WEIGHT = 5 };

typedef struct numbers {
    float grad_scale, weight_decay, rate, keep, from_g, from_b;
    bool first;
} numbers;

static numbers round_numbers(tr_lars_numbers k) {
    return (numbers){
        .grad_scale = (float)k.grad_scale,
        .weight_decay = (float)k.weight_decay,
        .rate = (float)k.rate,
        .keep = (float)k.keep,
        .from_g = (float)k.from_g,
        .from_b = (float)k.from_b,
        .first = k.first,
    };
}

__attribute__((noinline)) static void
direct_block(const void *k, const float *restrict p, const float *restrict g,
             float *const *state, float *restrict d) {
    const float scale = ((const numbers *)k)->grad_scale;
    (void)p, (void)state;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        d[i] = scale * g[i];
    }
}

__attribute__((noinline)) static void plain_block(const void *k, float *restrict p,
                                                  const float *restrict g,
                                                  float *const *state) {
    const numbers c = *(const numbers *)k;
    (void)state;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i] + c.weight_decay * p[i];
        p[i] = p[i] - c.rate * grad;
    }
}

__attribute__((noinline)) static void momentum_block(const void *k, float *restrict p,
                                                     const float *restrict g,
                                                     float *const *state) {
    float *restrict buffer = state[0];
    const numbers c = *(const numbers *)k;
    if (c.first) { // what is there may be anything
        memset(buffer, 0, TR_UPDATE_BLOCK * sizeof *buffer);
    }
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i] + c.weight_decay * p[i];
        float value = c.keep * buffer[i] + c.rate * grad;
        p[i] = p[i] - (c.from_g * grad + c.from_b * value);
        buffer[i] = value;
    }
}

void TR_ISA_NAME(tr__lars_direct_cpu)(const tr_hyper *hyper, const tr_update *update,
                                      float *direction) {
    numbers k = round_numbers(tr__lars_numbers(hyper, update));
    tr__direct_all(update, 0, direct_block, &k, direction);
}

void TR_ISA_NAME(tr__lars_cpu)(const tr_hyper *hyper, const tr_update *update) {
    tr_lars_numbers exact = tr__lars_numbers(hyper, update);
    numbers k = round_numbers(exact);
    if (exact.has_buffer) {
        tr__update_all(update, 1, WEIGHT, momentum_block, &k);
    } else {
        tr__update_all(update, 0, WEIGHT, plain_block, &k);
    }
}
