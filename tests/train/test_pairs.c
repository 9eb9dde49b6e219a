// The contrastive loss in one pass and in two: a large batch is the same however it is
// cut, with dropout; and in a reproducible run two passes change no bit.
#include "draws.h"
#include "pairs.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = TEST_DRAWS(4096, 512), MICRO = 16 };

static const char *write_records(void *const *state) {
    const char *path = scratch_path(state, "pairs.jsonl");
    pairs_write(path, BATCH);
    return path;
}

static void open_run(trial *t, const pairs_setting *s) {
    char text[PAIRS_TEXT_MAX];
    pairs_text(s, text);
    run_options options = {.text = text, .resume = "never"};
    trial_open(t, &options);
    assert_int_equal(t->plan->request.passes, s->passes);
}

// The distance of two gradients, as a share of the first one's norm.
static double distance(const snapshot *a, const snapshot *b) {
    double apart = 0, norm = 0;
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const snapshot_tensor *of = &a->tensors[i];
        const snapshot_tensor *other = snapshot_find(b, of->name);
        for (int64_t k = 0; k < of->count; k++) {
            double x = of->part[0][k], y = other->part[0][k];
            apart += (x - y) * (x - y);
            norm += x * x;
        }
    }
    assert_true(norm > 0);
    return sqrt(apart / norm);
}

static void a_large_batch_is_the_same_in_parts(void **state) {
    const pairs_setting whole = {write_records(state), BATCH, BATCH, 1, ""};
    pairs_setting parts = whole;
    snapshot gradient[2];
    tr_step_result result[2];
    parts.micro = MICRO;
    parts.passes = 2;
    for (int cut = 0; cut < 2; cut++) {
        trial t;
        open_run(&t, cut ? &parts : &whole);
        trial_steps(&t, 1, &result[cut]);
        snapshot_take_gradients(&gradient[cut], &t);
        trial_close(&t);
    }
    double apart = distance(&gradient[0], &gradient[1]);
    print_message("gradients %.3g apart, losses %.3g\n", apart,
                  fabs(result[0].loss - result[1].loss));
    assert_true(apart <= 1e-5);
    assert_true(fabs(result[0].loss - result[1].loss) <= 1e-6);
    snapshot_free(&gradient[0]);
    snapshot_free(&gradient[1]);
}

static void two_passes_change_no_bit(void **state) {
    static const char *const ways[] = {
        "", "\"execution\": {\"reproducible\": true},",
        "\"execution\": {\"reproducible\": true}, \"zero_optimization\": "
        "{\"offload_optimizer\": {\"device\": \"cpu\"}},",
        "\"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}},",
        "\"activation_checkpointing\": {\"number_checkpoints\": 2, "
        "\"cpu_checkpointing\": true, \"cpu_saved\": true},"};
    const char *records = write_records(state);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        snapshot end[2];
        for (int passes = 1; passes <= 2; passes++) {
            trial t;
            const pairs_setting s = {records, 20, 3, passes,
                                     ways[way]}; // the last one short
            open_run(&t, &s);
            trial_steps(&t, 3, NULL);
            snapshot_take(&end[passes - 1], &t);
            trial_close(&t);
        }
        snapshot_assert_same(&end[0], &end[1]);
        snapshot_free(&end[0]);
        snapshot_free(&end[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_large_batch_is_the_same_in_parts,
                                        scratch_cache, scratch_remove),
        cmocka_unit_test_setup_teardown(two_passes_change_no_bit, scratch_cache,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
