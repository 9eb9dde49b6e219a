#include "backend/cpu/isa.h"
#include "ops/optimizers/cpu_optimizer_blocks.h"
#include "ops/optimizers/sgd/sgd.h"

void TR_ISA_NAME(tr__sgd_cpu)(const tr_hyper *hyper, const tr_update *update);

// One element costs as much as this many moved ones.
enum { WEIGHT = 5 };

typedef struct numbers {
    float grad_scale, weight_decay, lr, keep, take, from_g, from_b;
    bool first;
} numbers;

static numbers round_numbers(tr_sgd_numbers k) {
    return (numbers){
        .grad_scale = (float)k.grad_scale,
        .weight_decay = (float)k.weight_decay,
        .lr = (float)k.lr,
        .keep = (float)k.keep,
        .take = (float)k.take,
        .from_g = (float)k.from_g,
        .from_b = (float)k.from_b,
        .first = k.first,
    };
}

__attribute__((noinline)) static void plain_block(const void *k, float *restrict p,
                                                  const float *restrict g,
                                                  float *const *state) {
    const numbers c = *(const numbers *)k;
    (void)state;
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i] + c.weight_decay * p[i];
        p[i] = p[i] - c.lr * grad;
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
        float value = c.keep * buffer[i] + c.take * grad;
        p[i] = p[i] - c.lr * (c.from_g * grad + c.from_b * value);
        buffer[i] = value;
    }
}

void TR_ISA_NAME(tr__sgd_cpu)(const tr_hyper *hyper, const tr_update *update) {
    tr_sgd_numbers exact = tr__sgd_numbers(hyper, update);
    numbers k = round_numbers(exact);
    if (exact.has_buffer) {
        tr__update_all(update, 1, WEIGHT, momentum_block, &k);
    } else {
        tr__update_all(update, 0, WEIGHT, plain_block, &k);
    }
}
