// history.jsonl of an out folder: which processes trained there, what they said and how
// they ended; and what tranche report makes of it.
#include "command.h"
#include "runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The number-th line of out/history.jsonl, from the last one where it is below 0.
static json_t *event(void **state, int number) {
    size_t bytes = 0;
    char *text = file_read(state, "out/history.jsonl", &bytes), *lines[16];
    int count = 0;
    for (char *line = strtok(text, "\n"); line && count < 16;
         line = strtok(NULL, "\n")) {
        lines[count++] = line;
    }
    int at = number < 0 ? count + number : number;
    assert_in_range(at, 0, count - 1);
    json_t *object = json_loads(lines[at], 0, NULL);
    assert_non_null(object);
    free(text);
    return object;
}

static const char *text_in(const json_t *of, const char *name) {
    return json_string_value(json_object_get(of, name));
}

static bool has_line(const json_t *lines, const char *words) {
    size_t i;
    const json_t *line;
    json_array_foreach((json_t *)lines, i, line) {
        if (strstr(json_string_value(line), words)) {
            return true;
        }
    }
    return false;
}

static void test_start_and_end(void **state) {
    run_file(state, classifier_run, ", \"tensor_parallel\": {\"dtype\": \"fp16\"}");
    free(succeed(state, LIST("train", "run.json", "--steps", "3")));
    free(succeed(state, LIST("train", "run.json", "--steps", "5", "--quiet")));
    json_t *start = event(state, 0), *end = event(state, 1), *again = event(state, 2);
    assert_string_equal(text_in(start, "kind"), "start");
    const json_t *command = json_object_get(start, "command");
    assert_int_equal(json_array_size(command), 5);
    assert_string_equal(json_string_value(json_array_get(command, 1)), "train");
    assert_string_equal(json_string_value(json_array_get(command, 4)), "3");
    assert_int_equal(number_in(start, "ranks"), 1);
    assert_true(number_in(json_object_get(start, "machine"), "cores") >= 1);
    assert_true(has_line(json_object_get(start, "said"), "tensor_parallel.dtype"));
    assert_string_equal(text_in(end, "kind"), "end");
    assert_int_equal(number_in(end, "exit_status"), 0);
    assert_true(number_in(end, "time") >= number_in(start, "time"));
    // --quiet keeps from the terminal what is kept here.
    assert_true(has_line(json_object_get(again, "said"), "resumed from"));
    json_decref(start);
    json_decref(end);
    json_decref(again);
}

static void test_error(void **state) {
    bad_sample_run(state, 9);
    fail_with(state, NULL, LIST("train", "run.json"), 4, LIST("x.npy"));
    json_t *end = event(state, -1);
    assert_string_equal(text_in(end, "kind"), "end");
    assert_int_equal(number_in(end, "exit_status"), 4);
    assert_non_null(strstr(text_in(end, "error"), "x.npy"));
    json_decref(end);
}

static void test_no_file(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "3")));
    char path[512], elsewhere[512];
    snprintf(path, sizeof path, "%s", file_path(state, "out/history.jsonl"));
    snprintf(elsewhere, sizeof elsewhere, "%s", file_path(state, "other"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    free(succeed(state, LIST("train", "run.json", "--steps", "5")));
    struct stat info; // the link is not followed, and training goes on
    assert_int_equal(stat(elsewhere, &info), -1);
}

// ---- the report

// What the page says of the processes.
static char *run_section(void **state) {
    size_t bytes = 0;
    char *page = file_read(state, "page.html", &bytes);
    const char *begin = strstr(page, "<section class=\"run\">");
    assert_non_null(begin);
    const char *end = strstr(begin, "<section id=\"settings\">");
    assert_non_null(end);
    char *section = strndup(begin, (size_t)(end - begin));
    free(page);
    return section;
}

static void test_report(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "3", "--set", "seed=7")));
    free(succeed(state, LIST("report", "out", "--out", "page.html")));
    char *page = run_section(state);
    assert_non_null(strstr(page, "<h2>The run: <code>out</code></h2>"));
    assert_non_null(strstr(page, " train run.json --steps 3 --set seed=7</td>"));
    assert_non_null(strstr(page, "with status 0</td>"));
    free(page);
}

// What others wrote stays text; damaged lines and missing members do no harm.
static void test_hostile(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "2")));
    file_text(state, "out/history.jsonl",
              "{\"kind\": \"warning\", \"text\": \"of no start\"}\n"
              "not JSON\n"
              "{\"kind\": \"start\", \"time\": 1e300, \"command\": [\"it's\", \"\", 3, "
              "\"<script>alert(1)</script>\"], \"version\": \"<b>\", \"machine\": 4, "
              "\"said\": [\"</section>\", {}], \"warnings\": \"none\"}\n"
              "[]\n"
              "{\"kind\": \"warning\", \"text\": \"<img src=x>\"}\n"
              "{\"kind\": \"start\"}\n"
              "{\"kind\": \"end\", \"exit_status\": 139, \"error\": \"<i>\"}\n"
              "{\"kind\": \"start\", \"command\"");
    free(succeed(state, LIST("report", "out", "--out", "page.html")));
    char *page = run_section(state);
    static const char *const never[] = {"<b>", "<i>", "<img", "<script>"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_null(strstr(page, never[i]));
    }
    assert_non_null(strstr(page, "nothing says so: it goes on, or was killed"));
    assert_non_null(strstr(page, "with status 139: &#60;i&#62;</td>"));
    assert_non_null(strstr(page, "&#60;img src=x&#62;</li>"));
    assert_null(strstr(page, "of no start"));
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_start_and_end), TEST(test_error),   TEST(test_no_file),
        TEST(test_report),        TEST(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
