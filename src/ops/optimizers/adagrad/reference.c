#include "ops/optimizers/adagrad/adagrad.h"

#include <math.h>

void tr__adagrad_reference(const tr_hyper *hyper, const tr_update *update) {
    tr_adagrad_numbers k = tr__adagrad_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double p = update->param[i];
        double g = k.grad_scale * update->grad[i] + k.weight_decay * p;
        double sum = (k.first ? k.initial : update->state[0][i]) + g * g;
        update->param[i] = (float)(p - k.lr * g / (sqrt(sum) + k.eps));
        update->state[0][i] = (float)sum;
    }
}
