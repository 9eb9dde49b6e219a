#include "noise_by_hand.h"

#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void noise_run(char text[NOISE_TEXT_MAX], int64_t batch, int64_t micro,
               const char *execution, const char *more) {
    snprintf(text, NOISE_TEXT_MAX,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
             "\"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 31, "
             "\"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0}, \"data\": "
             "{\"order\": \"sequential\"}, \"steps\": 9, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"noise_scale\": {\"measure\": "
             "true}, \"execution\": {\"threads\": 1%s}, \"out\": \"unused\"%s}",
             (int)batch, (int)micro, execution, more);
}

// Of the mean gradient over the targets of some samples: its squares.
typedef struct gradient {
    double targets, tied, untied;
} gradient;

static void add_squares(const snapshot *grads, double unscale, gradient *out) {
    for (size_t k = 0; k < grads->count; k++) {
        const snapshot_tensor *tensor = &grads->tensors[k];
        double *sum = strstr(tensor->name, "wte") ? &out->tied : &out->untied;
        for (int64_t e = 0; e < tensor->count; e++) {
            double g = tensor->part[0][e] * unscale;
            *sum += g * g;
        }
    }
}

// The samples [begin, end) of the first batch: no others have targets meanwhile.
static gradient gradient_of(samples *data, int64_t batch, int64_t begin, int64_t end) {
    size_t bytes = (size_t)(data->count * data->targets) * sizeof *data->target;
    char text[NOISE_TEXT_MAX];
    gradient out = {0};
    tr_step_result r = TR_STEP_RESULT_INIT;
    snapshot grads;
    trial t;
    int32_t *kept = malloc(bytes);
    assert_non_null(kept);
    memcpy(kept, data->target, bytes);
    samples_mask(data, 0, begin);
    samples_mask(data, end, data->count);
    noise_run(text, batch, batch, "", "");
    run_options options = {.text = text, .own_train = data->dataset, .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, 1, &r);
    out.targets = (double)r.targets;
    if (r.targets > 0) {
        snapshot_take_gradients(&grads, &t);
        add_squares(&grads, t.engine->seed_power / out.targets, &out);
        snapshot_free(&grads);
    }
    trial_close(&t);
    memcpy(data->target, kept, bytes);
    free(kept);
    return out;
}

// The same of each rank's first samples, and the mean over the ranks that have targets.
typedef struct firsts {
    double tied, untied, inverse; // 1 / targets
    int count;
} firsts;

static firsts firsts_of(samples *data, const noise_cut *cut, int64_t micros) {
    int64_t each = cut->micro * cut->ranks;
    int64_t own = (cut->batch + each - 1) / each * cut->micro;
    firsts out = {0};
    for (int64_t r = 0; r < cut->ranks; r++) {
        int64_t begin = r * own, end = begin + micros * cut->micro;
        end = end < begin + own ? end : begin + own;
        end = end < cut->batch ? end : cut->batch;
        gradient part = gradient_of(data, cut->batch, begin, end);
        if (part.targets > 0) {
            out.tied += part.tied;
            out.untied += part.untied;
            out.inverse += 1 / part.targets;
            out.count++;
        }
    }
    out.tied /= out.count;
    out.untied /= out.count;
    out.inverse /= out.count;
    return out;
}

// McCandlish et al. 2018, appendix A, added up over tied and other tensors.
void noise_by_hand(samples *data, const noise_cut *cut, double *trace, double *square) {
    gradient big = gradient_of(data, cut->batch, 0, cut->batch);
    double samples_ = (double)cut->batch, share = big.targets / samples_;
    firsts one = firsts_of(data, cut, 1);
    double untied = (one.untied - big.untied) / (one.inverse * share - 1 / samples_);
    *trace = untied;
    *square = big.untied - untied / samples_;
    if (cut->wave > 0) {
        firsts wave = firsts_of(data, cut, cut->wave);
        double tied = (wave.tied - big.tied) / (wave.inverse * share - 1 / samples_);
        *trace += tied;
        *square += big.tied - tied / samples_;
    }
}

void noise_assert(const tr_step_result *step, double trace, double square,
                  const char *what) {
    if (!(fabs(step->noise_trace / trace - 1) < 1e-4 &&
          fabs(step->noise_gradient / square - 1) < 1e-4)) {
        fail_msg("%s: %g %g, by hand %g %g", what, step->noise_trace,
                 step->noise_gradient, trace, square);
    }
}
