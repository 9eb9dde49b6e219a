#include "ops/optimizers/sgd/sgd.h"

void tr__sgd_reference(const tr_hyper *hyper, const tr_update *update) {
    tr_sgd_numbers k = tr__sgd_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double p = update->param[i];
        double g = k.grad_scale * update->grad[i] + k.weight_decay * p;
        if (k.has_buffer) {
            double b = k.first ? 0 : update->state[0][i];
            b = k.keep * b + k.take * g;
            update->state[0][i] = (float)b;
            g = k.from_g * g + k.from_b * b;
        }
        update->param[i] = (float)(p - k.lr * g);
    }
}
