// How fast the pairs of a head turn, by the ways of stretching a context.
#include "ops/nn/rope/rope.h"

#include <math.h>

// 0 up to `from`, 1 from `to` on, a line between.
static double ramp(double x, double from, double to) {
    return fmin(1, fmax(0, (x - from) / (to - from)));
}

static double llama3(const tr_rope_attr *attr, double frequency) {
    double turns = attr->original * frequency / (2 * M_PI);
    double stays = ramp(turns, attr->low, attr->high);
    return (stays + (1 - stays) / attr->factor) * frequency;
}

// The pair that makes so many turns in the original context.
static double pair_of(const tr_rope_attr *attr, double turns) {
    double wave = attr->original / (turns * 2 * M_PI);
    return attr->depth * log(wave) / (2 * log(attr->theta));
}

// Limits as transformers has them: within the head's D elements, though there are D/2
// pairs.
static double yarn(const tr_rope_attr *attr, int64_t j, double frequency) {
    double from = pair_of(attr, attr->high), to = pair_of(attr, attr->low);
    from = fmax(0, attr->whole ? floor(from) : from);
    to = fmin(attr->depth - 1, attr->whole ? ceil(to) : to);
    double slower = ramp((double)j, from, to > from ? to : from + 1e-3);
    return (1 - slower + slower / attr->factor) * frequency;
}

double tr__rope_frequency(const tr_rope_attr *attr, int64_t j) {
    double frequency = pow(attr->theta, -2.0 * (double)j / attr->depth);
    switch (attr->scaling) {
    case TR_ROPE_LINEAR:
        return frequency / attr->factor;
    case TR_ROPE_LLAMA3:
        return llama3(attr, frequency);
    case TR_ROPE_YARN:
        return yarn(attr, j, frequency);
    default:
        return frequency;
    }
}
