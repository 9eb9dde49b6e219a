// Nobody waits without knowing for what: how long a run will take is said before its
// first step, as far as it is known, and what takes more than a second says how far it
// is. Machines differ in speed, so work grows until it is long enough to be spoken of.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// What the run says of its time on standard error.
static char *begun(void **state) {
    outcome o = run(state, LIST("train", "run.json", "--resume", "never"));
    assert_int_equal(o.status, 0);
    char *line = strstr(o.err, "6 optimizer steps");
    assert_non_null(line);
    line[strcspn(line, "\n")] = '\0';
    line = strdup(line);
    outcome_free(&o);
    return line;
}

// Once the machine is measured, the time is predicted; nothing is measured for it.
static void test_how_long(void **state) {
    run_file(state, text_run, "");
    char *line = begun(state);
    assert_string_equal(line, "6 optimizer steps (how long: said after the first)");
    free(line);
    free(succeed(state, LIST("calibrate", "run.json", "--out", "machine.json")));
    line = begun(state);
    double seconds = 0;
    assert_int_equal(sscanf(line,
                            "6 optimizer steps, about less than 1s (%lf s each, "
                            "predicted)",
                            &seconds),
                     1);
    assert_true(seconds > 0 && seconds < 1.0 / 6);
    free(line);
    // The measurements are of this model's kernels.
    run_file(state, text_run, ", \"bf16\": {\"enabled\": true}");
    line = begun(state);
    assert_says(line, "(how long: said after the first)");
    free(line);
    // Of a batch that changes, the first one is known.
    run_file(state, text_run, ", \"batch_schedule\": [[5, 10]]");
    line = begun(state);
    assert_says(line, " s each of the first batch, predicted)");
    free(line);
}

// Runs it, with more and more work (`arguments` returns them for a try), until it takes
// so long that it has to say how far it is.
static char *said_of(void **state, const setting *how,
                     const char *const *(*arguments)(void **state, int number),
                     const char *words) {
    for (int i = 0; i < TRIES; i++) {
        double start = now();
        outcome o = run_with(state, how, arguments(state, i));
        double seconds = now() - start;
        assert_int_equal(o.status, 0);
        const char *text = how && how->together ? o.out : o.err;
        bool said = strstr(text, words) != NULL;
        char *copy = strdup(text);
        outcome_free(&o);
        if (said) {
            assert_true(seconds > 1);
            return copy;
        }
        free(copy);
        if (seconds > 60) {
            break;
        }
    }
    fail_msg("\"%s\" was not said", words);
    return NULL;
}

static const char *const *evaluates(void **state, int number) {
    static const char *const all[] = {"evaluate", "out", "--data", "long.txt", NULL};
    file_words(state, "long.txt", (size_t)500000 << number);
    return all;
}

// On a terminal as one live line that goes away, else in whole lines.
static void test_evaluate(void **state) {
    static const setting terminal = {.terminal = true, .together = true, .columns = 80};
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "1")));
    char *text = said_of(state, &terminal, evaluates, "\revaluating: ");
    assert_null(strchr(text, '\x1b'));
    const char *end = strrchr(text, '\r');
    assert_says(text, "%");
    assert_says(text, "perplexity");
    assert_null(strstr(strstr(text, "perplexity"), "evaluating"));
    assert_non_null(end);
    free(text);
    outcome o = run(state, LIST("evaluate", "out", "--data", "text.txt"));
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, ""); // short work says nothing
    outcome_free(&o);
}

enum { LONGEST = 4096 };

static const char *const *samples(void **state, int number) {
    static char prompt[LONGEST];
    static const char *all[] = {"sample", "out",       "--prompt", prompt, "--tokens",
                                "1",      "--threads", "1",        NULL};
    char layers[32];
    memset(prompt, 'a', sizeof prompt - 1);
    snprintf(layers, sizeof layers, "model.n_layer=%d", 1 << number);
    free(succeed(state, LIST("train", "run.json", "--set", layers, "--resume", "never",
                             "--steps", "1")));
    return all;
}

// How far a long prompt has been read.
static void test_sample(void **state) {
    file_words(state, "text.txt", 100);
    file_text(
        state, "run.json",
        "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 256,"
        " \"n_head\": 4, \"n_positions\": 4096}, \"data\": {\"format\": \"bytes\","
        " \"train\": [\"text.txt\"], \"max_length\": 16},"
        " \"train_batch_size\": 1, \"steps\": 1, \"out\": \"out\"}");
    char *text = said_of(state, NULL, samples, "reading the prompt: ");
    int percent = -1;
    assert_int_equal(sscanf(strstr(text, "reading the prompt: "),
                            "reading the prompt: %d%%", &percent),
                     1);
    assert_true(percent > 0 && percent < 100);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_how_long),
        TEST(test_evaluate),
        TEST(test_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
