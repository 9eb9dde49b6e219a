// The examples do what they are shown for.
#include "command.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] = TR_SOURCE_DIR "/examples/";

static const char *example(const char *name) {
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", source, name);
    return path;
}

static json_int_t step_of(void *const *state, const char *out) {
    json_t *found = succeed_json(state, LIST("inspect", out, "--json"));
    json_int_t step =
        json_integer_value(json_object_get(json_object_get(found, "state"), "step"));
    json_decref(found);
    return step;
}

// Five epochs of 1,000 samples in batches of 64: 15 whole ones and one of 40, 80
// updates, no clipping.
static void test_classifier(void **state) {
    int steps = 0, epochs = 0, shorts = 0;
    outcome o = run(state, LIST("train", example("classifier.json")));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "Adam, gradient_clipping 0; rate of update 1: 0.001");
    assert_says(o.err, "batch 64 = 64 x 1 accumulation step; 80 optimizer steps");
    assert_says(o.out, "step 80/80");
    outcome_free(&o);
    char *text = file_read(state, "out/classifier/metrics.jsonl", NULL), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *targets = json_object_get(object, "targets");
        steps += targets != NULL;
        shorts += json_number_value(targets) == 40;
        epochs += json_object_get(object, "epoch_loss") != NULL;
        json_decref(object);
    }
    assert_int_equal(steps, 80);
    assert_int_equal(shorts, 5);
    assert_int_equal(epochs, 5);
    free(text);
    assert_int_equal(step_of(state, "out/classifier"), 80);
}

// The same run with the optimizer on the host: the same bits.
static void test_classifier_offload(void **state) {
    free(succeed(state, LIST("train", example("classifier.json"))));
    outcome o = run(state, LIST("train", example("classifier_offload.json")));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "accepted, but without meaning here: "
                       "zero_optimization.offload_optimizer.pin_memory");
    outcome_free(&o);
    char *same = succeed(state, LIST("diff", "out/classifier/checkpoints/latest",
                                     "out/classifier-offload/checkpoints/latest"));
    assert_says(same, "bit-identical");
    free(same);
}

// The program on the library: as many updates, and it learns.
static void test_classifier_program(void **state) {
    static const setting program = {.program = TR_EXAMPLES "/classifier"};
    outcome o = run_with(state, &program, LIST(NULL));
    double first = 0, last = 0;
    assert_int_equal(o.status, 0);
    const char *begin = strstr(o.out, "loss "), *end = strstr(o.out, "step 80");
    assert_true(begin && end);
    assert_int_equal(sscanf(begin, "loss %lf", &first), 1);
    assert_int_equal(sscanf(end, "step 80 loss %lf", &last), 1);
    assert_true(last < 0.75 * first);
    outcome_free(&o);
    assert_int_equal(step_of(state, "out/classifier-c"), 80);
}

static void test_own_model(void **state) {
    static const setting program = {.program = TR_EXAMPLES "/own_model"};
    outcome o = run_with(state, &program, LIST(NULL));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
}

// The text run, a few steps of it.
static void test_text(void **state) {
    file_words(state, "text.txt", 30000);
    outcome o = run(state, LIST("train", example("text.json"), "--data", "text.txt",
                                "--steps", "2", "--set", "train_batch_size=4", "--set",
                                "train_micro_batch_size_per_gpu=2"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "step 2: validation loss");
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_classifier),
        TEST(test_classifier_offload),
        TEST(test_classifier_program),
        TEST(test_own_model),
        TEST(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
