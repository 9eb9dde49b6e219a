#include "train/noise.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { STEPS_LEAST = 10 }; // that a verdict needs

bool tr__noise_estimate(const tr_noise_sample *s, double *trace, double *gradient) {
    double difference = s->small_inverse - s->big_inverse;
    if (!(difference > 1e-9 * s->small_inverse)) {
        return false;
    }
    *trace = (s->small - s->big) / difference;
    *gradient = s->big - *trace * s->big_inverse;
    return isfinite(*trace) && isfinite(*gradient);
}

void tr__noise_add(tr_noise *noise, double keep, double trace, double gradient) {
    noise->trace = keep * noise->trace + trace;
    noise->gradient = keep * noise->gradient + gradient;
    noise->weight = keep * noise->weight + 1;
    noise->steps++;
}

double tr__noise_trace(const tr_noise *noise) {
    return noise->weight > 0 ? noise->trace / noise->weight : NAN;
}

double tr__noise_gradient(const tr_noise *noise) {
    return noise->weight > 0 ? noise->gradient / noise->weight : NAN;
}

double tr__noise_scale(const tr_noise *noise) {
    bool known = noise->weight > 0 && noise->trace > 0 && noise->gradient > 0;
    return known ? noise->trace / noise->gradient : NAN;
}

static double steps_at(double noise, double batch) {
    return 1 + noise / batch;
}

static double samples_at(double noise, double batch) {
    return 1 + batch / noise;
}

void tr__noise_words(const tr_noise *noise, int64_t batch, char *text) {
    double scale = tr__noise_scale(noise), t = (double)batch;
    text[0] = '\0';
    if (noise->steps < STEPS_LEAST) {
        return;
    }
    if (!isfinite(scale)) {
        bool hidden = noise->gradient <= 0;
        snprintf(
            text, TR_NOISE_TEXT_MAX,
            "gradient noise scale: not known from %" PRId64 " steps: %s", noise->steps,
            hidden ? "the noise hides the gradient; the batch is far below critical"
                   : "parts of the batch say the same; it is far above critical");
        return;
    }
    const char *stands = t < scale / 2   ? "well below it: most of a step is noise"
                         : t > 2 * scale ? "well above it: most samples add little"
                                         : "near it";
    snprintf(text, TR_NOISE_TEXT_MAX,
             "gradient noise scale: the critical batch is about %.3g samples (over "
             "%" PRId64 " steps); T = %" PRId64 " is %s. Twice the batch would take "
             "%.2f times the steps and %.2f times the samples; half of it %.2f times "
             "the steps and %.2f times the samples",
             scale, noise->steps, batch, stands,
             steps_at(scale, 2 * t) / steps_at(scale, t),
             samples_at(scale, 2 * t) / samples_at(scale, t),
             steps_at(scale, t / 2) / steps_at(scale, t),
             samples_at(scale, t / 2) / samples_at(scale, t));
}
