// Checkpoints as the program's users meet them.
#include "command.h"
#include "runs.h"

#include "base/memory.h"
#include "ckpt/state.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- a state.json that was changed, its own check included

static const char state_file[] = "out/checkpoints/latest/state.json";

static void change_number(void *const *state, const tr_state *was,
                          const tr_manifest *manifest, const char *name, double value) {
    tr_error err = {0};
    char *text = NULL;
    tr_state now = *was;
    assert_true(tr__state_numbers_set(&now.numbers, name, value));
    assert_int_equal(tr__state_encode(&now, manifest, &text, &err), TR_OK);
    file_text(state, state_file, text);
    tr__free(text);
}

static void test_hostile_state(void **state) {
    static const struct {
        const char *name;
        double value;
    } cases[] = {
        {"planner.micro_batch", 0},
        {"planner.optimizer_home", 99},
        {"planner.param_home", -7},
        {"planner.wave", 0},
        {"guard_rate", NAN},
        {"guard_rate", 1e300},
        {"guard_rate", -1},
        {"fixed_exponent", 9e15},
        {"batch", 1e300},
        {"learned_samples", -1},
        {"planner.recomputed_ops", -1},
    };
    tr_error err = {0};
    tr_state was;
    tr_manifest manifest;
    run_file(state, classifier_run,
             ", \"memory\": {\"device\": \"1GiB\", \"host\": \"1GiB\"}");
    free(succeed(state, LIST("train", "run.json")));
    assert_int_equal(
        tr__state_read(file_path(state, state_file), &was, &manifest, &err), TR_OK);
    double chosen = 0;
    assert_true(tr__state_numbers_get(&was.numbers, "planner.micro_batch", &chosen));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_number(state, &was, &manifest, cases[i].name, cases[i].value);
        fail_with(state, NULL, LIST("train", "run.json", "--set", "epochs=3"), 5,
                  LIST("state.json", cases[i].name));
    }
    // What the planner might have chosen, but not for this run.
    for (double m = 1; m < 3e9; m = 4 * m + 1) {
        change_number(state, &was, &manifest, "planner.micro_batch", fmin(m, 0x1p31));
        outcome o = run(state, LIST("train", "run.json", "--set", "epochs=3"));
        assert_true(o.status == 0 || o.status == 3 || o.status == 5);
        outcome_free(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_hostile_state)};
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
