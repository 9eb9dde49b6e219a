// Run on ranks: the gradient noise scale of a step is that of the ranks' first
// micro-batches, and for tied tensors of their first waves; also where a rank has one
// wave alone, or no samples.
#include "on_ranks.h"
#include "train/noise_by_hand.h"

#include <stdio.h>

static tr_comm *comm;

typedef struct way {
    int64_t batch;
    int64_t wave; // 0: all of a rank's micro-batches
    bool tied;    // are tied tensors measured?
    const char *execution, *more;
} way;

static void one_way(samples *data, const way *w, int stage) {
    int64_t ranks = tr_comm_ranks(comm), all = (w->batch + 2 * ranks - 1) / (2 * ranks);
    int64_t wave = w->wave ? w->wave : all;
    const noise_cut cut = {ranks, w->batch, 2, w->tied ? wave : 0};
    char text[NOISE_TEXT_MAX], execution[128], more[256];
    double trace, square;
    tr_step_result r = TR_STEP_RESULT_INIT;
    trial t;
    snprintf(execution, sizeof execution, ", \"wave\": %d%s", (int)wave, w->execution);
    snprintf(more, sizeof more, ", \"zero_optimization\": {\"stage\": %d%s}", stage,
             w->more);
    noise_by_hand(data, &cut, &trace, &square);
    noise_run(text, w->batch, 2, execution, more);
    run_options options = {
        .text = text, .own_train = data->dataset, .comm = comm, .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, 1, &r);
    noise_assert(&r, trace, square, text);
    trial_close(&t);
}

// Slices of the vocabulary stay in one buffer until all have added to them at stages 0
// and 1 alone.
static void one_step(void **state) {
    static const char slices[] = ", \"vocabulary_slices\": 3";
    static const char host[] = ", \"offload_optimizer\": {\"device\": \"cpu\"}";
    static const way ways[] = {
        {14, 1, true, "", ""},
        {14, 2, true, "", ""},
        {9, 2, true, "", ""},
        {14, 0, true, "", host},
        {14, 0, true, "", ""},
        {14, 2, false, slices, ""},
        {14, 2, false, ", \"reproducible\": true", ""},
    };
    samples data;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    for (int k = 0; k < 4; k++) {
        data.target[k] = TR_NO_TARGET;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int stage = 0; stage < 4; stage++) {
            way w = ways[i];
            w.tied = w.tied || (w.execution == slices && stage < 2);
            one_way(&data, &w, stage);
        }
    }
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
