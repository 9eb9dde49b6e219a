// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks",
// 2024), in the form of torch.optim.Muon:
//
//     g = grad_scale * grad
//     b = b + (1 - momentum) * (g - b)
//     d = g + momentum * (b - g)       with Nesterov's momentum, else b
//     p = p * (1 - lr * weight_decay) - lr * adjust * orthogonal(d)
//
// The last line is of a matrix as a whole. What is no matrix, embeddings and the head
// are AdamW's (tr_apart).
#include "ops/optimizers/muon/muon.h"

#include "ops/optimizers/adam/adam.h"

#include <math.h>

static void direct(const tr_hyper *hyper, const tr_update *update, float *direction) {
    const tr_muon_hyper own = tr__muon_hyper(hyper);
    for (int64_t i = 0; i < update->count; i++) {
        double g = update->grad_scale * update->grad[i];
        double b = update->state[0][i];
        b += (1 - own.momentum) * (g - b);
        update->state[0][i] = (float)b;
        direction[i] = (float)(own.nesterov ? g + own.momentum * (b - g) : b);
    }
}

static double adjust(tr_muon_adjust how, double rows, double columns) {
    return how == TR_MUON_MATCH_RMS  ? 0.2 * sqrt(fmax(rows, columns))
           : how == TR_MUON_SPECTRAL ? sqrt(rows / columns)
                                     : sqrt(fmax(1, rows / columns));
}

static tr_orthogonal orthogonal(const tr_hyper *hyper, int64_t rows, int64_t columns) {
    const tr_muon_hyper own = tr__muon_hyper(hyper);
    return (tr_orthogonal){.steps = own.steps,
                           .a = 3.4445,
                           .b = -4.775,
                           .c = 2.0315,
                           .eps = 1e-7,
                           .type = own.type,
                           .gram = own.gram,
                           .keep = 1 - hyper->lr * hyper->weight_decay,
                           .step = hyper->lr *
                                   adjust(own.adjust, (double)rows, (double)columns)};
}

static const tr_matrix_update matrices = {.direct = direct, .orthogonal = orthogonal};

const tr_optimizer tr__optimizer_muon = {
    .name = "muon",
    .number = 7,
    .state_count = 1,
    .states = {{.name = "momentum_buffer"}},
    .flops_per_element = 6,
    .matrices = &matrices,
    .apart = &tr__optimizer_adam,
    .has_betas = true,
};
