#include "backend/cpu/isa.h"
#include "ops/optimizers/adagrad/adagrad.h"
#include "ops/optimizers/cpu_optimizer_blocks.h"

#include <math.h>

void TR_ISA_NAME(tr__adagrad_cpu)(const tr_hyper *hyper, const tr_update *update);

// One element costs as much as this many moved ones.
enum { WEIGHT = 6 };

typedef struct numbers {
    float grad_scale, weight_decay, lr, eps, initial;
    bool first;
} numbers;

static numbers round_numbers(tr_adagrad_numbers k) {
    return (numbers){
        .grad_scale = (float)k.grad_scale,
        .weight_decay = (float)k.weight_decay,
        .lr = (float)k.lr,
        .eps = (float)k.eps,
        .initial = (float)k.initial,
        .first = k.first,
    };
}

__attribute__((noinline)) static void update_block(const void *k, float *restrict p,
                                                   const float *restrict g,
                                                   float *const *state) {
    float *restrict sum = state[0];
    const numbers c = *(const numbers *)k;
    for (int i = 0; c.first && i < TR_UPDATE_BLOCK; i++) {
        sum[i] = c.initial;
    }
    for (int i = 0; i < TR_UPDATE_BLOCK; i++) {
        float grad = c.grad_scale * g[i] + c.weight_decay * p[i];
        float squares = sum[i] + grad * grad;
        p[i] = p[i] - c.lr * grad / (sqrtf(squares) + c.eps);
        sum[i] = squares;
    }
}

void TR_ISA_NAME(tr__adagrad_cpu)(const tr_hyper *hyper, const tr_update *update) {
    numbers k = round_numbers(tr__adagrad_numbers(hyper, update));
    tr__update_all(update, 1, WEIGHT, update_block, &k);
}
