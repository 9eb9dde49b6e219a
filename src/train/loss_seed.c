#include "train/loss_seed.h"

double tr__loss_seed_power(const tr_model *model, int64_t batch) {
    double least = (double)batch * (double)tr_model_targets(model);
    double power = 1;
    while (power < least) {
        power *= 2;
    }
    return power;
}
