// tranche plot: curves from metrics.jsonl, for terminals and as SVG, whatever is in it.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// A folder with these metrics.
static void metrics(void **state, const char *out, const char *lines) {
    char name[256];
    mkdir(file_path(state, out), 0777);
    snprintf(name, sizeof name, "%s/metrics.jsonl", out);
    file_text(state, name, lines);
}

static const char falling[] = "{\"step\": 1, \"loss\": 4, \"lr\": 0.1}\n"
                              "{\"step\": 2, \"loss\": 3, \"lr\": 0.1}\n"
                              "{\"step\": 3, \"loss\": 2, \"lr\": 0.05}\n"
                              "{\"step\": 3, \"validation_loss\": 2.5}\n"
                              "{\"step\": 4, \"loss\": 1, \"lr\": 0.05}\n"
                              "{\"step\": 4, \"validation_loss\": 1.5}\n";

static int count_of(const char *text, const char *word) {
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word)) {
        count++;
    }
    return count;
}

static bool is_ascii(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text > 126 ||
            ((unsigned char)*text < 32 && *text != '\n')) {
            return false;
        }
    }
    return true;
}

// The chart of a run that is known, character by character.
static void test_chart(void **state) {
    metrics(state, "out", falling);
    char *text = succeed(state, LIST("plot", "out"));
    assert_true(is_ascii(text));
    assert_says(text, "loss: training, smoothed; validation v\n"
                      "     4 |                  ***\n"
                      "       |                     ***\n");
    assert_says(text, "     step      loss validated      best        lr      norm  "
                      "tokens/s    run\n"
                      "        4         1       1.5       1.5      0.05         -  "
                      "       - * out\n");
    char *line = text, *end;
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        assert_true(end - line <= 80 && (end == line || end[-1] != ' '));
    }
    free(text);
}

// A run as it is left by the program, from the folder or the file, also while it is
// written: a last line that is not whole is left out.
static void test_real_runs(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    char *folder = succeed(state, LIST("plot", "out"));
    char *file = succeed(state, LIST("plot", "out/metrics.jsonl"));
    assert_int_equal(count_of(folder, "* out\n"), 1);
    assert_true(strlen(file) > 500);
    size_t bytes = 0;
    char *lines = file_read(state, "out/metrics.jsonl", &bytes);
    char *more = malloc(bytes + 64);
    snprintf(more, bytes + 64, "%s{\"step\": 7, \"lo", lines);
    file_text(state, "out/metrics.jsonl", more);
    char *again = succeed(state, LIST("plot", "out"));
    assert_string_equal(again, folder);
    free(again);
    free(more);
    free(lines);
    free(file);
    free(folder);
    // Resumed, the file goes on.
    free(succeed(state, LIST("train", "run.json", "--steps", "9", "--set",
                             "optimizer.params.lr=1e-3", "--out", "out")));
    char *later = succeed(state, LIST("plot", "out"));
    assert_says(later, "\n        9 ");
    free(later);
}

static void test_svg(void **state) {
    metrics(state, "a&<b>", falling);
    metrics(state, "b", falling);
    char *said = succeed(state, LIST("plot", "a&<b>", "b", "--out", "p.svg"));
    assert_string_equal(said, "");
    free(said);
    char *svg = file_read(state, "p.svg", NULL);
    assert_memory_equal(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39);
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    assert_says(svg, ">a&#38;&#60;b&#62;</text>");
    assert_says(svg, "prefers-color-scheme:dark");
    assert_says(svg, ">loss</text>");
    assert_says(svg, ">learning rate</text>");
    assert_null(strstr(svg, ">gradient norm")); // there is none
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    assert_int_equal(count_of(svg, "class=\"l s0\""), 2);
    assert_int_equal(count_of(svg, "class=\"l s1\""), 2);
    assert_int_equal(count_of(svg, "class=\"v s1\""), 1);
    free(svg);
    fail_with(state, NULL, LIST("plot", "b", "--out", "no/p.svg"), 5, LIST("no/p.svg"));
}

// Names come from the command line: nothing of them reaches a terminal or breaks XML.
static void test_names(void **state) {
    static const char bad[] = "a\x1b[31m\x07\xff";
    metrics(state, bad, falling);
    char *text = succeed(state, LIST("plot", bad));
    assert_says(text, "a?[31m?");
    assert_null(strchr(text, '\x1b'));
    free(text);
    free(succeed(state, LIST("plot", bad, "--out", "p.svg")));
    char *svg = file_read(state, "p.svg", NULL);
    assert_says(svg, ">a?[31m?\?</text>");
    free(svg);
}

static void test_terminal(void **state) {
    const setting wide = {.terminal = true,
                          .columns = 60,
                          .environment = {"LC_ALL=C.UTF-8", "NO_COLOR="}};
    const setting plain = {.terminal = true,
                           .columns = 60,
                           .environment = {"LC_ALL=C.UTF-8", "NO_COLOR=1"}};
    const setting ascii = {
        .terminal = true, .columns = 60, .environment = {"LC_ALL=C", "NO_COLOR=1"}};
    metrics(state, "a", falling);
    metrics(state, "b", falling);
    outcome o = run_with(state, &wide, LIST("plot", "a", "b"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "\x1b[33m\xe2");
    outcome_free(&o);
    o = run_with(state, &plain, LIST("plot", "a"));
    assert_null(strchr(o.out, '\x1b'));
    assert_says(o.out, "\xe2\xa3\xbf a"); // a full cell
    outcome_free(&o);
    o = run_with(state, &plain, LIST("plot", "a", "b")); // colors are missed
    assert_says(o.out, "* a");
    assert_says(o.out, "o b");
    outcome_free(&o);
    o = run_with(state, &ascii, LIST("plot", "a"));
    assert_null(strchr(o.out, '\xe2'));
    assert_says(o.out, "* a");
    outcome_free(&o);
}

// What is no metrics file ends with its line.
static void test_refusals(void **state) {
    static const struct {
        const char *lines;
        int status;
        const char *words[WORDS_MAX];
    } all[] = {
        {"", 4, {"out/metrics.jsonl", "no step with a loss"}},
        {"{\"step\": 1, \"lr\": 1}\n", 4, {"no step with a loss"}},
        {"{\"step\": 1, \"loss\": 1}\nhello\n", 4, {"out/metrics.jsonl:2: not JSON"}},
        {"\n", 4, {"out/metrics.jsonl:1: not JSON"}},
        {"[1]\n", 4, {":1: not a JSON object"}},
        {"{\"loss\": 1}\n", 4, {":1: has no \"step\""}},
        {"{\"step\": -1, \"loss\": 1}\n", 4, {":1: has no \"step\" of 0 or more"}},
        {"{\"step\": 1.5, \"loss\": 1}\n", 4, {":1: has no \"step\""}},
        {"{\"step\": 99999999999999999999, \"loss\": 1}\n", 4, {":1: not JSON"}},
        {"{\"step\": 1, \"loss\": \"1\"}\n", 4, {":1: \"loss\" is neither a number"}},
        {"{\"step\": 1, \"loss\": 1e999}\n", 4, {":1: not JSON"}},
        {"{\"step\": 1, \"loss\": NaN}\n", 4, {":1: not JSON"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        metrics(state, "out", all[i].lines);
        fail_with(state, NULL, LIST("plot", "out"), all[i].status, all[i].words);
    }
    metrics(state, "good", falling);
    fail_with(state, NULL, LIST("plot", "good", "out"), 4, LIST("out/metrics.jsonl"));
    fail_with(state, NULL, LIST("plot", "nothere"), 5, LIST("nothere"));
    mkdir(file_path(state, "empty"), 0777);
    fail_with(state, NULL, LIST("plot", "empty"), 5, LIST("empty/metrics.jsonl"));
    static char zero[] = "{\"step\": 1, \0 \"loss\": 1}\n";
    file_write(state, "out/metrics.jsonl", zero, sizeof zero - 1);
    fail_with(state, NULL, LIST("plot", "out"), 4, LIST(":1: ", "zero byte"));
    static char wide[100000];
    memset(wide, '[', sizeof wide - 1);
    metrics(state, "out", wide);
    fail_with(state, NULL, LIST("plot", "out"), 4, LIST(":1: a line of over"));
}

// Gaps, nulls, extremes and single points are drawn.
static void test_odd_values(void **state) {
    static const char *const all[] = {
        "{\"step\": 1, \"loss\": null}\n{\"step\": 2, \"loss\": 3}\n",
        "{\"step\": 5, \"loss\": 3}\n",
        "{\"step\": 0, \"loss\": 0}\n",
        "{\"step\": 1, \"loss\": 1e308}\n{\"step\": 2, \"loss\": -1e308}\n",
        "{\"step\": 1, \"loss\": 1e-320}\n{\"step\": 2, \"loss\": 1e300}\n",
        "{\"step\": 1, \"loss\": 2}\n{\"step\": 9223372036854775807, \"loss\": 1}\n",
        "{\"step\": 9, \"loss\": 2}\n{\"step\": 3, \"loss\": 1}\n",
        "{\"step\": 7, \"validation_loss\": 2}\n",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        metrics(state, "out", all[i]);
        free(succeed(state, LIST("plot", "out")));
        free(succeed(state, LIST("plot", "out", "--out", "p.svg")));
        char *svg = file_read(state, "p.svg", NULL);
        assert_null(strstr(svg, "nan"));
        assert_null(strstr(svg, "inf"));
        free(svg);
    }
}

// Many lines take no more memory than few, and a picture of bounded size.
static void test_many_lines(void **state) {
    enum { LINES = 300000, EACH = 96 };
    char *lines = malloc((size_t)LINES * EACH), *at = lines;
    assert_non_null(lines);
    for (int i = 1; i <= LINES; i++) {
        at += snprintf(at, EACH, "{\"step\": %d, \"loss\": %.3f}\n", i,
                       2 + 300.0 / (i + 99) + (i % 7) * 0.01);
    }
    metrics(state, "out", lines);
    free(lines);
    const setting limited = {.memory_limit = CAN_LIMIT_MEMORY ? 100000000 : 0};
    outcome o = run_with(state, &limited, LIST("plot", "out", "--out", "p.svg"));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    size_t bytes = 0;
    free(file_read(state, "p.svg", &bytes));
    assert_true(bytes > 5000 && bytes < 100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_chart),      TEST(test_real_runs),  TEST(test_svg),
        TEST(test_names),      TEST(test_terminal),   TEST(test_refusals),
        TEST(test_odd_values), TEST(test_many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
