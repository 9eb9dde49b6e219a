// What people see while a run is at work: one live line on a terminal, plain lines
// elsewhere.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count(const char *text, const char *words) {
    int found = 0;
    while ((text = strstr(text, words)) != NULL) {
        text += strlen(words);
        found++;
    }
    return found;
}

// Steps that take no time: the first and the last line are there, each whole.
static void test_plain(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_null(strpbrk(o.out, "\r\x1b\b"));
    assert_null(strpbrk(o.err, "\r\x1b\b"));
    assert_int_equal(count(o.out, "\nstep 1/6  loss "), 1);
    assert_int_equal(count(o.out, "\nstep 6/6  loss "), 1);
    assert_int_equal(count(o.out, " left\n"), count(o.out, "/6  loss "));
    assert_int_equal(count(o.out, "\nstep 3: validation loss "), 1);
    assert_int_equal(count(o.out, "\nstep 6: validation loss "), 1);
    assert_true(o.out[strlen(o.out) - 1] == '\n');
    static const char *const parts[] = {"  lr ", "  norm ", " tokens/s  ", "iB  "};
    for (int i = 0; i < 4; i++) {
        assert_says(o.out, parts[i]);
    }
    // What the run is comes before, on the other stream.
    assert_says(o.err, "model gpt2, 10944 parameters; data: 1 file");
    assert_says(o.err, "batch 5 = 2 x 3 accumulation steps; 6 optimizer steps");
    assert_says(o.err, "gradient_clipping 1 (default)");
    assert_says(o.err, "dropout: residual 0.1");
    assert_true(count(o.err, "\n") <= 9); // and "ready": ten lines in all
    assert_int_equal(strncmp(o.out, "ready in ", 9), 0);
    outcome_free(&o);
}

// At the end: how it went, where it is, and what to do with it.
static void test_summary(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
    char *text = succeed(state, LIST("train", "run.json", "--out", "my run"));
    const char *done = strstr(text, "\ndone: 6 steps in ");
    assert_non_null(done);
    assert_says(done, "s; last loss ");
    assert_says(done, "; validation loss ");
    assert_says(done, ", best ");
    assert_says(done, "\nsaved: 'my run'/checkpoints/step-00000006\n"
                      "next: tranche plot 'my run'\n"
                      "      tranche sample 'my run' --prompt \"Once\"\n"
                      "      tranche evaluate 'my run'\n"
                      "      tranche train 'my run'/run.json --steps 12   goes on");
    free(text);
    // Each command of it can be run.
    free(succeed(state, LIST("plot", "my run")));
    free(succeed(state, LIST("evaluate", "my run")));
    free(succeed(state, LIST("train", "my run/run.json", "--steps", "12")));
    // A run that is complete makes no step, and has nothing to sum up.
    text = succeed(state, LIST("train", "my run/run.json", "--steps", "12"));
    assert_null(strstr(text, "done: "));
    free(text);
    run_file(state, classifier_run, "");
    text = succeed(state, LIST("train", "run.json"));
    assert_says(text, "      tranche predict out --data FILE --format csv\n");
    assert_null(strstr(text, "tranche sample"));
    free(text);
}

// Warnings and errors alone; all files are written as ever.
static void test_quiet(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
    setting terminal = {.terminal = true, .columns = 80};
    const setting *const all[] = {NULL, &terminal};
    for (int i = 0; i < 2; i++) {
        outcome o = run_with(
            state, all[i],
            LIST("train", "run.json", "--quiet", "--out", i == 0 ? "out" : "again"));
        assert_int_equal(o.status, 0);
        assert_string_equal(o.out, "");
        assert_string_equal(o.err, "");
        outcome_free(&o);
    }
    size_t bytes = 0;
    free(file_read(state, "out/metrics.jsonl", &bytes));
    assert_true(bytes > 1000);
    outcome o = run(state, LIST("train", "run.json", "--quiet", "--out", "third",
                                "--set", "wandb.enabled=true"));
    assert_says(o.err, "warning: wandb.enabled");
    assert_null(strchr(strchr(o.err, '\n') + 1, '\n'));
    outcome_free(&o);
    fail_with(state, NULL, LIST("train", "run.json", "--quiet", "--model", "none"), 2,
              LIST("none"));
}

// Each line is an object. Those of metrics.jsonl are as they are there, in their order.
static void test_json(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
    outcome o = run(state, LIST("train", "run.json", "--json"));
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
    char *metrics = file_read(state, "out/metrics.jsonl", NULL), *next = metrics;
    int notes = 0, lines = 0;
    json_t *last = NULL;
    for (char *line = strtok(o.out, "\n"); line; line = strtok(NULL, "\n")) {
        json_decref(last);
        last = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(last);
        assert_true(number_in(last, "time") > 1e9);
        const char *kind = json_string_value(json_object_get(last, "kind"));
        assert_non_null(kind);
        notes += strcmp(kind, "note") == 0 && json_object_get(last, "text");
        if (json_object_get(last, "step")) {
            size_t length = strlen(line);
            assert_int_equal(strncmp(next, line, length), 0);
            assert_int_equal(next[length], '\n');
            next += length + 1;
            lines++;
        }
    }
    assert_string_equal(next, "");
    assert_true(lines >= 8 && notes > 5);
    assert_string_equal(json_string_value(json_object_get(last, "kind")), "end");
    assert_true(number_in(last, "exit_status") == 0);
    assert_true(json_is_null(json_object_get(last, "error")));
    json_decref(last);
    free(metrics);
    outcome_free(&o);
}

// An error is on standard error as ever, and in the last line. With --quiet there are
// no notes.
static void test_json_error(void **state) {
    run_file(state, text_run, "");
    outcome o = run(state, LIST("train", "run.json", "--json", "--model", "none\x1b"));
    assert_int_equal(o.status, 2);
    assert_says(o.err, "tranche: ");
    json_t *end = json_loads(o.out, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(end);
    assert_true(number_in(end, "exit_status") == 2);
    assert_says(json_string_value(json_object_get(end, "error")), "none");
    json_decref(end);
    outcome_free(&o);
    char *text = succeed(state, LIST("train", "run.json", "--json", "--quiet"));
    assert_null(strstr(text, "\"kind\": \"note\""));
    assert_int_equal(count(text, "\"kind\": \"step\""), 6);
    assert_int_equal(count(text, "\"kind\": \"end\""), 1);
    free(text);
}

static void test_steps_per_print(void **state) {
    run_file(state, text_run, ", \"steps_per_print\": 2");
    char *text = succeed(state, LIST("train", "run.json"));
    static const int printed[] = {1, 2, 4, 6};
    for (int i = 0; i < 4; i++) {
        char words[32];
        snprintf(words, sizeof words, "\nstep %d/6  loss ", printed[i]);
        assert_int_equal(count(text, words), 1);
    }
    assert_int_equal(count(text, "/6  loss "), 4);
    free(text);
}

// What a terminal of so many columns shows in the end: lines, each drawn over with what
// came after a return. Fails when a line would wrap.
static char *screen(const char *text, size_t columns) {
    char *shown = calloc(1, strlen(text) + 1), *line = shown;
    size_t at = 0, length = 0;
    for (const char *c = text; *c; c++) {
        assert_true((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\r');
        if (*c == '\r') {
            at = 0;
        } else if (*c == '\n') {
            line[length++] = '\n';
            line += length;
            at = length = 0;
        } else {
            assert_true(at + 1 < columns);
            line[at++] = *c;
            length = at > length ? at : length;
        }
    }
    return shown;
}

// A live line, with no escape code, whatever NO_COLOR is; above it whole lines.
static void test_live(void **state) {
    static const setting terminals[] = {
        {.terminal = true, .columns = 120},
        {.terminal = true, .columns = 120, .environment = {"NO_COLOR=1"}},
        {.terminal = true, .columns = 120, .environment = {"TERM=dumb"}},
    };
    for (int i = 0; i < 3; i++) {
        run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
        outcome o = run_with(state, &terminals[i],
                             LIST("train", "run.json", "--resume", "never"));
        assert_int_equal(o.status, 0);
        assert_null(strchr(o.out, '\x1b'));
        assert_says(o.out, "\rstep 1/6  loss ");
        assert_says(o.out, "\ndone: 6 steps in ");
        char *shown = screen(o.out, 120);
        const char *third = strstr(shown, "\nstep 3: validation loss ");
        const char *sixth = strstr(shown, "\nstep 6: validation loss ");
        const char *live = strstr(shown, "\nstep 6/6  loss ");
        assert_true(third && sixth && live && third < sixth && sixth < live);
        assert_int_equal(count(shown, "/6  loss "), 1);
        assert_int_equal(shown[strlen(shown) - 1], '\n');
        free(shown);
        outcome_free(&o);
    }
}

// At 80 columns whole fields are left out, and the time that is left is there.
static void test_eighty_columns(void **state) {
    static const setting terminal = {.terminal = true, .columns = 80};
    run_file(state, text_run, "");
    outcome o =
        run_with(state, &terminal,
                 LIST("train", "run.json", "--set", "optimizer.params.lr=1.2345e-4"));
    assert_int_equal(o.status, 0);
    int lines = 0;
    for (char *line = strtok(o.out, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        if (strstr(line, "/6  loss ")) {
            assert_true(strlen(line) < 80);
            assert_says(line, " tokens/s");
            assert_says(line, " left");
            assert_null(strstr(line, "  norm "));
            lines++;
        }
    }
    assert_true(lines >= 2);
    outcome_free(&o);
}

// However narrow it is, fields are whole, and the step and the loss stay longest.
static void test_forty_columns(void **state) {
    static const setting forty = {.terminal = true, .columns = 40},
                         twenty = {.terminal = true, .columns = 20};
    run_file(state, text_run, "");
    outcome o = run_with(state, &forty, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    int lines = 0;
    for (char *line = strtok(o.out, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        int step, used = 0;
        double loss;
        if (sscanf(line, "step %d/6  loss %lf%n", &step, &loss, &used) == 2 && used) {
            assert_true(strlen(line) < 40);
            assert_string_equal(line + strlen(line) - strlen(" left"), " left");
            lines++;
        }
    }
    assert_true(lines >= 2);
    outcome_free(&o);
    o = run_with(state, &twenty, LIST("train", "run.json", "--resume", "never"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "\rstep 1  loss ");
    assert_null(strstr(o.out, "left"));
    outcome_free(&o);
}

// After an interruption the line stays above what is said of it, and does not come
// back.
static void test_interrupted(void **state) {
    static const setting terminal = {
        .terminal = true, .columns = 120, .program = "/usr/bin/timeout"};
    run_file(state, classifier_run, "");
    outcome o = run_with(state, &terminal,
                         LIST("--foreground", "--preserve-status", "-s", "INT", "1",
                              TR_PROGRAM, "train", "run.json", "--steps", "100000000"));
    assert_int_equal(o.status, 130);
    char *shown = screen(o.out, 120);
    const char *said = strstr(shown, "\ninterrupted; checkpoint of step ");
    assert_non_null(said);
    assert_says(said, " saved: run the same command again to resume\n");
    assert_null(strstr(said, "loss"));
    assert_int_equal(count(shown, "/100000000  loss "), 1);
    free(shown);
    outcome_free(&o);
}

// A terminal that becomes narrower: the line that stood there stays, and those that
// come fit.
static void test_resized(void **state) {
    static const setting terminal = {.terminal = true,
                                     .columns = 100,
                                     .later_columns = 40,
                                     .program = "/usr/bin/timeout"};
    run_file(state, classifier_run, "");
    outcome o = run_with(state, &terminal,
                         LIST("--foreground", "--preserve-status", "-s", "INT", "2",
                              TR_PROGRAM, "train", "run.json", "--steps", "100000000"));
    assert_int_equal(o.status, 130);
    char *end = strstr(o.out, "\ninterrupted");
    char *first = strstr(o.out, "\rstep 1/");
    char *narrow = first ? strstr(first, "\r\n\rstep ") : NULL;
    assert_true(end && narrow && narrow < end);
    *end = *narrow = '\0';
    assert_true(strlen(strrchr(first, '\r')) > 60);
    int lines = 0;
    for (char *line = strtok(narrow + 2, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        assert_true(strlen(line) < 40);
        lines += strstr(line, "  loss ") != NULL;
    }
    assert_true(lines >= 3);
    outcome_free(&o);
}

// Warnings and errors have a color on a terminal alone, and where nobody refuses it.
static void test_colors(void **state) {
    static const struct {
        setting what;
        bool colored;
    } all[] = {
        {{.terminal = true, .together = true, .columns = 120}, true},
        {{.together = true}, false},
        {{.terminal = true, .together = true, .environment = {"NO_COLOR=1"}}, false},
        {{.terminal = true, .together = true, .environment = {"NO_COLOR="}}, true},
        {{.terminal = true, .together = true, .environment = {"TERM=dumb"}}, false},
    };
    run_file(state, classifier_run, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool colored = all[i].colored;
        outcome o = run_with(state, &all[i].what,
                             LIST("train", "run.json", "--resume", "never", "--set",
                                  "wandb.enabled=true"));
        assert_int_equal(o.status, 0);
        assert_says(o.out, colored ? "\x1b[33mwarning: \x1b[0mwandb.enabled"
                                   : "warning: wandb.enabled");
        assert_true(colored || !strchr(o.out, '\x1b'));
        outcome_free(&o);
        o = run_with(state, &all[i].what, LIST("train", "none.json"));
        assert_int_equal(o.status, 2);
        assert_says(o.out, colored ? "\x1b[31mtranche: \x1b[0mnone.json"
                                   : "tranche: none.json");
        outcome_free(&o);
    }
}

// Narrow: the line is cut, as one that wraps could not be drawn over.
static void test_narrow(void **state) {
    static const setting narrow = {.terminal = true, .columns = 30};
    run_file(state, classifier_run, ", \"checkpoint\": {\"every\": 100}");
    outcome o = run_with(state, &narrow, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "\rstep 1/8  loss ");
    char *end = strstr(o.out, "\ndone: "); // plain lines may wrap
    assert_non_null(end);
    end[1] = '\0';
    char *shown = screen(o.out, 30);
    assert_int_equal(count(shown, "\nstep 8/8  loss "), 1);
    free(shown);
    outcome_free(&o);
}

// A run long enough to be told against the machine's rate: MFU is shown.
static void test_utilization(void **state) {
    file_words(state, "text.txt", 40000);
    file_text(
        state, "run.json",
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 512, 512, 3]}, "
        "\"data\": {\"format\": \"random\", \"samples\": 64, \"features\": 6, "
        "\"classes\": 3}, \"steps\": 1000000, \"train_batch_size\": 64}");
    // Ended by its own metrics: a file-size limit stands for the hours that it takes.
    static const setting limited = {.file_limit = 16000};
    outcome o = run_with(state, &limited, LIST("train", "run.json"));
    assert_int_equal(o.status, 5);
    assert_says(o.out, "  MFU ");
    assert_says(o.err, "metrics.jsonl: cannot write: File too large");
    outcome_free(&o);
}

// Whoever reads the progress may leave: the training goes on.
static void test_closed_output(void **state) {
    static const setting full = {.out = "/dev/full"};
    run_file(state, classifier_run, "");
    outcome o = run_with(state, &full, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    char *text = succeed(state, LIST("train", "run.json"));
    assert_says(text, "step 8 of 8: this run is complete");
    free(text);
}

// Streams that are closed leave their numbers to the first files that are opened: what
// the program says must not go into those.
static void test_closed_streams(void **state) {
    static const setting closed = {.closed = true};
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "whole")));
    outcome o = run_with(state, &closed, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    char *metrics = file_read(state, "out/metrics.jsonl", NULL);
    assert_int_equal(strncmp(metrics, "{\"step\": 1, ", 12), 0);
    assert_null(strstr(metrics, "ready"));
    free(metrics);
    free(succeed(state, LIST("diff", "out", "whole")));
    // What cannot be said at all is an error.
    o = run_with(state, &closed, LIST("inspect", "out"));
    assert_int_equal(o.status, 5);
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_plain),           TEST(test_summary),        TEST(test_quiet),
        TEST(test_steps_per_print), TEST(test_json),           TEST(test_json_error),
        TEST(test_resized),         TEST(test_colors),         TEST(test_live),
        TEST(test_narrow),          TEST(test_eighty_columns), TEST(test_forty_columns),
        TEST(test_interrupted),     TEST(test_utilization),    TEST(test_closed_output),
        TEST(test_closed_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
