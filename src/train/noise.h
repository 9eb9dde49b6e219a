// The gradient noise scale (McCandlish et al. 2018, arXiv 1812.06162, appendix A): how
// many samples make a gradient that is as much signal as noise.
//
// G_b is a mean gradient over b samples, G the true one, S the covariance of one
// sample's. E |G_b|^2 = |G|^2 + tr S / b, so two sizes of batch tell both:
//
//     tr S  = (|G_small|^2 - |G_big|^2) / (1 / b_small - 1 / b_big)
//     |G|^2 = |G_big|^2 - tr S / b_big
//
// One step's estimates are very noisy, and their ratio is biased: both are smoothed,
// each by itself, and then divided. B = tr S / |G|^2, in samples.
#ifndef TR_TRAIN_NOISE_H
#define TR_TRAIN_NOISE_H

#include <stdbool.h>
#include <stdint.h>

// What one step has measured. Each norm is of a mean over its own samples.
typedef struct tr_noise_sample {
    double small;         // the mean of |G_small|^2 over the parts measured
    double small_inverse; // the mean of 1 / b_small over the same parts
    double big;           // |G_big|^2
    double big_inverse;   // 1 / b_big
} tr_noise_sample;

// Part of a checkpoint.
typedef struct tr_noise {
    double trace, gradient; // weighted sums of tr S and |G|^2
    double weight;          // of both
    int64_t steps;          // that were measured
} tr_noise;

// tr S and |G|^2 of one step; false: nothing is told by it (one part is the whole, or
// numbers are not finite).
bool tr__noise_estimate(const tr_noise_sample *sample, double *trace, double *gradient);

// Takes in a step; `keep` in [0, 1): what the steps before weigh against it.
void tr__noise_add(tr_noise *noise, double keep, double trace, double gradient);

double tr__noise_trace(const tr_noise *noise);    // tr S, NAN: not known
double tr__noise_gradient(const tr_noise *noise); // |G|^2, NAN: not known
// B in samples; NAN where nothing was measured, or the noise hides the signal.
double tr__noise_scale(const tr_noise *noise);

enum { TR_NOISE_TEXT_MAX = 512 };

// In words, for the end of a run: the critical batch, where `batch` stands, and what a
// batch of twice and of half the size would take. Steps to reach a loss go with
// 1 + B / T, samples with 1 + T / B (McCandlish et al., equation 2.11).
// text: [TR_NOISE_TEXT_MAX]; "" where there is too little to tell from.
void tr__noise_words(const tr_noise *noise, int64_t batch, char *text);

#endif
