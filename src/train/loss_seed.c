#include "train/loss_seed.h"

static double power_above(double least) {
    double power = 1;
    while (power < least) {
        power *= 2;
    }
    return power;
}

double tr__loss_seed_power_of_means(int64_t micros) {
    return power_above((double)micros);
}

double tr__loss_seed_power(const tr_model *model, int64_t batch) {
    return power_above((double)batch * (double)tr_model_targets(model));
}
