// tranche report: what its page is made of, and that its numbers are the run's and the
// plan's. What a browser makes of it: tests/report/check_browser.py.
#include "command.h"
#include "runs.h"

#include "report/plot.h"

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

static char *page_of(void **state, const char *file) {
    size_t bytes = 0;
    char *page = file_read(state, file, &bytes);
    assert_true(bytes == strlen(page) && bytes < 1500000);
    return page;
}

// What the page's scripts read.
static json_t *data_of(const char *page) {
    static const char begin[] = "<script type=\"application/json\" id=\"data\">";
    const char *data = strstr(page, begin);
    assert_non_null(data);
    data += strlen(begin);
    const char *end = strstr(data, "</script>");
    json_error_t problem;
    json_t *root = json_loadb(data, (size_t)(end - data), 0, &problem);
    if (!root) {
        fail_msg("line %d: %s", problem.line, problem.text);
    }
    return root;
}

static const json_t *series(const json_t *data, size_t run, const char *key) {
    const json_t *one = json_array_get(json_object_get(data, "runs"), run);
    return json_object_get(json_object_get(one, "series"), key);
}

static double at(const json_t *of, const char *column, size_t i) {
    return json_number_value(json_array_get(json_object_get(of, column), i));
}

static int64_t field(const json_t *row, size_t i) {
    return json_integer_value(json_array_get(row, i));
}

// ---- one run

// Nothing is loaded, and no script but the page's own runs.
static void check_closed(const char *page) {
    static const char *const never[] = {" src=", " href=", "<link", "<iframe", "<img",
                                        "<base", "<form",  "<a ",   " onclick"};
    const char *body = strstr(page, "<body>"), *end = strstr(page, "<script>");
    assert_non_null(body);
    char *markup = strndup(body, (size_t)(end - body));
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_null(strstr(markup, never[i]));
    }
    free(markup);
    assert_says(page, "http-equiv=\"Content-Security-Policy\" content=\"default-src "
                      "'none'; script-src 'sha256-");
    assert_says(page, "; base-uri 'none'; form-action 'none'\">");
    const char *policy = strstr(page, "Content-Security-Policy");
    char *rule = strndup(policy, (size_t)(strchr(policy, '>') - policy));
    assert_null(strstr(rule, "http:"));
    assert_null(strstr(rule, "script-src 'unsafe"));
    free(rule);
}

// Does the map have a buffer of these bytes that lives at the step?
static bool has(const json_t *buffers, int64_t step, int64_t offset, int64_t bytes) {
    size_t i;
    json_t *row;
    json_array_foreach(buffers, i, row) {
        if (field(row, 1) == offset && field(row, 2) == bytes &&
            field(row, 3) <= step && step <= field(row, 4)) {
            return true;
        }
    }
    return false;
}

// Each [offset, bytes] that the plan's JSON says of a step is in the map at this step.
static void check_map(const json_t *map, const json_t *plan) {
    const json_t *device = json_array_get(json_object_get(map, "spaces"), 0);
    const json_t *buffers = json_object_get(device, "buffers"), *steps, *ledger;
    size_t i, pairs = 0;
    json_t *step, *value;
    const char *key;
    steps = json_object_get(plan, "steps");
    assert_int_equal(json_array_size(steps), number_in(map, "count"));
    json_array_foreach(steps, i, step) {
        json_object_foreach(step, key, value) {
            if (json_is_array(value) && strcmp(key, "elements") != 0 &&
                field(value, 1) > 0) {
                assert_true(has(buffers, (int64_t)i, field(value, 0), field(value, 1)));
                pairs++;
            }
        }
    }
    assert_true(pairs > 20);
    ledger = json_object_get(json_object_get(plan, "ledger"), "device");
    json_array_foreach(json_object_get(map, "categories"), i, value) {
        assert_int_equal(field(json_object_get(device, "ledger"), i),
                         number_in(ledger, json_string_value(value)));
    }
    assert_int_equal(number_in(device, "total"), number_in(ledger, "total"));
}

static void test_run(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
    free(succeed(state, LIST("train", "run.json")));
    char *said = succeed(state, LIST("report", "out", "--out", "page.html"));
    assert_string_equal(said, "page.html: 1 run\n");
    char *page = page_of(state, "page.html");
    json_t *data = data_of(page), *plan, *last;
    check_closed(page);
    size_t bytes = 0;
    char *lines = file_read(state, "out/metrics.jsonl", &bytes);
    last = json_loadb(lines, (size_t)(strchr(lines, '\n') - lines), 0, NULL);
    const json_t *loss = series(data, 0, "loss");
    assert_int_equal(number_in(loss, "count"), 6);
    assert_true(at(loss, "x", 0) == 1 && at(loss, "x", 5) == 6);
    double first = number_in(last, "loss");
    assert_true(at(loss, "y", 0) > first - 1e-4 && at(loss, "y", 0) < first + 1e-4);
    assert_int_equal(number_in(series(data, 0, "validation_loss"), "count"), 2);
    plan = succeed_json(state, LIST("plan", "run.json", "--json"));
    check_map(json_array_get(json_object_get(data, "plans"), 0), plan);
    // The peak that was planned, and the one that was measured.
    char words[96];
    int64_t total = (int64_t)number_in(
        json_object_get(json_object_get(plan, "ledger"), "device"), "total");
    snprintf(words, sizeof words, "planned peak</th><td>%lld</td>", (long long)total);
    assert_says(page, words);
    snprintf(words, sizeof words, "measured peak</th><td>%lld</td>", (long long)total);
    assert_says(page, words);
    assert_null(strstr(page, "class=\"warning\""));
    // Settings, with where each is from.
    assert_says(page, "train_batch_size</th><td>5</td><td>file</td>");
    json_decref(plan);
    json_decref(last);
    json_decref(data);
    free(lines);
    free(page);
    free(said);
}

// A plan has its page without data, weights or memory.
static void test_plan_alone(void **state) {
    file_text(state, "run.json",
              "{\"model\": \"gpt2\", \"data\": {\"format\": \"tokens\"}, "
              "\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 1}");
    char *said = succeed(state, LIST("report", "run.json"));
    char *page = page_of(state, "report.html");
    json_t *data = data_of(page);
    json_t *plan = succeed_json(state, LIST("plan", "run.json", "--json"));
    check_map(json_array_get(json_object_get(data, "plans"), 0), plan);
    assert_null(strstr(page, "<h2>Curves</h2>"));
    json_decref(plan);
    json_decref(data);
    free(page);
    free(said);
}

// ---- the time of a step

// A timeline has the spans of the trace, none less, with their times.
static void check_spans(const json_t *timeline, const json_t *trace) {
    const json_t *spans = json_object_get(timeline, "spans"), *names;
    size_t i, k, found = 0;
    json_t *event, *span;
    names = json_object_get(timeline, "names");
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) {
            continue;
        }
        bool there = false;
        json_array_foreach(spans, k, span) {
            const char *name =
                json_string_value(json_array_get(names, (size_t)field(span, 1)));
            there =
                there ||
                (strcmp(name, json_string_value(json_object_get(event, "name"))) == 0 &&
                 json_number_value(json_array_get(span, 3)) ==
                     json_number_value(json_object_get(event, "ts")) &&
                 json_number_value(json_array_get(span, 4)) ==
                     json_number_value(json_object_get(event, "dur")));
        }
        assert_true(there);
        found++;
    }
    assert_int_equal(found, json_array_size(spans));
    assert_true(found > 10);
}

// The path goes backwards in time without overlaps, and ends with the step.
static void check_path(const json_t *timeline) {
    double end = number_in(timeline, "end"), until = 0, sum = 0;
    size_t k;
    json_t *span;
    json_array_foreach(json_object_get(timeline, "spans"), k, span) {
        double begin = json_number_value(json_array_get(span, 3));
        double length = json_number_value(json_array_get(span, 4));
        if (field(span, 7) == 1) {
            assert_true(begin >= until - 0.01);
            until = begin + length;
            sum += length;
        }
    }
    assert_true(until > end - 0.01 && until < end + 0.01);
    assert_true(sum > 0 && sum <= end + 1);
}

static void test_time(void **state) {
    static const char machine[] = TR_SOURCE_DIR "/examples/machines/two-cores.json";
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--trace", "trace.json")));
    free(succeed(state, LIST("simulate", "run.json", "--machine", machine, "--trace",
                             "simulated.json")));
    free(succeed(state,
                 LIST("report", "out", "--trace", "trace.json", "--machine", machine)));
    char *page = page_of(state, "report.html");
    json_t *data = data_of(page), *traced = file_json(state, "trace.json"),
           *simulated = file_json(state, "simulated.json");
    const json_t *times = json_array_get(json_object_get(data, "times"), 0);
    check_spans(json_object_get(times, "planned"), simulated);
    check_spans(json_object_get(times, "traced"), traced);
    check_path(json_object_get(times, "planned"));
    check_path(json_object_get(times, "traced"));
    // One stream computes all the time that is planned.
    assert_says(page, "rank 0, compute</th><td>");
    assert_says(page, "critical path, planned: ");
    assert_says(page, "gaps between them</th><td>0.000</td><td>0.0 %</td>");
    json_decref(data);
    json_decref(traced);
    json_decref(simulated);
    free(page);
    // Without either there is no section.
    free(succeed(state, LIST("report", "out")));
    page = page_of(state, "report.html");
    assert_null(strstr(page, "Time of a step"));
    free(page);
}

// A span waits for another stream's: that is on the path, and what nobody waited for is
// not. The idle share of a stream is what it does not work of the step.
static void test_critical(void **state) {
    metrics(state, "out", "{\"step\": 1, \"loss\": 4}\n");
    file_text(
        state, "t.json",
        "{\"traceEvents\": ["
        "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 3, \"tid\": 0, \"args\": "
        "{\"name\": \"compute\"}},"
        "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 3, \"tid\": 1, \"args\": "
        "{\"name\": \"<b>copy\"}},"
        "{\"name\": \"a\", \"cat\": \"x\", \"ph\": \"X\", \"ts\": 0, \"dur\": 1000, "
        "\"pid\": 3, \"tid\": 0, \"args\": {\"step\": 0}},"
        "{\"name\": \"</script>\", \"cat\": \"y\", \"ph\": \"X\", \"ts\": 500, "
        "\"dur\": 3500, \"pid\": 3, \"tid\": 1, \"args\": {\"step\": 1}},"
        "{\"name\": \"c\", \"cat\": \"x\", \"ph\": \"X\", \"ts\": 4000, \"dur\": "
        "6000, \"pid\": 3, \"tid\": 0, \"args\": {\"step\": 2}}]}");
    free(succeed(state, LIST("report", "out", "--trace", "t.json")));
    char *page = page_of(state, "report.html");
    assert_says(page, "rank 3, compute</th><td>-</td><td>-</td><td>7.000</td><td>30.0 "
                      "%</td>");
    assert_says(page, "rank 3, &#60;b&#62;copy</th><td>-</td><td>-</td><td>3.500</td>"
                      "<td>65.0 %</td>");
    assert_says(page, "x, 1 of them</th><td>6.000</td><td>60.0 %</td>");
    assert_says(page, "y, 1 of them</th><td>3.500</td><td>35.0 %</td>");
    assert_says(page, "gaps between them</th><td>0.500</td><td>5.0 %</td>");
    assert_null(strstr(page, "<b>copy"));
    json_decref(data_of(page));
    free(page);
    static const char *const wrong[] = {"no", "{}", "{\"traceEvents\": [1]}",
                                        "{\"traceEvents\": [{\"ph\": \"X\"}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        file_text(state, "t.json", wrong[i]);
        fail_with(state, NULL, LIST("report", "out", "--trace", "t.json"), 4,
                  LIST("t.json"));
    }
    fail_with(state, NULL, LIST("report", "out", "--trace", "a", "--trace", "b"), 2,
              LIST("2 traces of 1 run"));
    fail_with(state, NULL, LIST("report", "out", "--trace", "none.json"), 5,
              LIST("none.json"));
    fail_with(state, NULL, LIST("report", "out", "--machine", "none.json"), 2,
              LIST("none.json"));
}

// ---- runs of others

static void test_hostile(void **state) {
    metrics(state, "<script>alert(1)<!--",
            "{\"step\": 1, \"loss\": 4}\n"
            "this is <b>no</b> JSON\n"
            "{\"step\": 2, \"loss\": \"<i>\"}\n"
            "{\"step\": 3, \"loss\": null, \"lr\": 1e-3}\n"
            "{\"step\": 4, \"loss\": 2}\n"
            "{\"step\": 5, \"lo");
    file_text(state, "<script>alert(1)<!--/run.json",
              "{\"model\": \"</script><img src=x onerror=alert(2)>\", \"origins\": "
              "{\"model\": \"&\\u0001\\\"'\"}}");
    char *said =
        succeed(state, LIST("report", "<script>alert(1)<!--", "--out", "p.html"));
    char *page = page_of(state, "p.html");
    json_t *data = data_of(page);
    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "<b>no"));
    assert_says(page, "&#60;script&#62;alert(1)&#60;!--/metrics.jsonl:2: not "
                      "JSON");
    assert_says(page, "/metrics.jsonl:3: &#34;loss&#34; is neither a number nor null");
    assert_null(strstr(page, "metrics.jsonl:4"));
    assert_null(strstr(page, "metrics.jsonl:6")); // it is being written
    assert_int_equal(number_in(series(data, 0, "loss"), "count"), 2);
    assert_int_equal(number_in(series(data, 0, "lr"), "count"), 1);
    assert_says(page, "there is no plan: ");
    json_decref(data);
    free(page);
    free(said);
}

// What differs between two runs, and nothing else.
static void test_beside(void **state) {
    static const char same[] =
        "{\"step\": 1, \"loss\": 4}\n{\"step\": 2, \"loss\": 3}\n";
    metrics(state, "a", same);
    metrics(state, "b", same);
    file_text(state, "a/run.json",
              "{\"seed\": 1, \"optimizer\": {\"params\": {\"lr\": "
              "0.1}}, \"steps\": 2}");
    file_text(state, "b/run.json",
              "{\"seed\": 1, \"optimizer\": {\"params\": {\"lr\": "
              "0.2}}, \"steps\": 2, \"epochs\": 3}");
    char *said = succeed(state, LIST("report", "a", "b", "--out", "p.html"));
    assert_string_equal(said, "p.html: 2 runs\n");
    char *page = page_of(state, "p.html");
    char *table = strstr(page, "<table id=\"differences\">");
    assert_non_null(table);
    *strstr(table, "</table>") = '\0';
    assert_says(table, "optimizer.params.lr</th><td>0.1</td><td>0.2</td>");
    assert_says(table, "epochs</th><td>-</td><td>3</td>");
    assert_null(strstr(table, "seed"));
    assert_null(strstr(table, "steps"));
    free(page);
    free(said);
}

// Which loss is the lowest, and since when.
static void test_passes(void **state) {
    char a[8000] = "", b[8000] = "", c[200] = "";
    for (int i = 1; i <= 100; i++) { // b is above until step 50
        snprintf(a + strlen(a), sizeof a - strlen(a),
                 "{\"step\": %d, \"loss\": %g, \"lr\": 1}\n", i, 2 - 0.001 * i);
        snprintf(b + strlen(b), sizeof b - strlen(b),
                 "{\"step\": %d, \"loss\": %g, \"lr\": 1}\n", i, 2.5 - 0.011 * i);
    }
    snprintf(c, sizeof c, "{\"step\": 1000, \"loss\": 3}\n");
    metrics(state, "a", a);
    metrics(state, "b", b);
    metrics(state, "<i>", c);
    file_text(state, "a/run.json", "{\"data\": {\"train\": [\"x\"]}}");
    file_text(state, "b/run.json", "{\"data\": {\"train\": [\"y\"]}}");
    char *said = succeed(state, LIST("report", "a", "b", "<i>", "--out", "p.html"));
    char *page = page_of(state, "p.html");
    char *table = strstr(page, "<table class=\"passes\">");
    assert_non_null(table);
    *strstr(table, "</table>") = '\0';
    assert_says(table, "loss, smoothed: b ends lowest</caption>");
    const char *row = strstr(table, "<th scope=\"row\">a</th><td>100</td><td>1.9");
    assert_non_null(row);
    int step = 0;
    const char *from = strstr(row, "below it from step ");
    assert_non_null(from);
    assert_int_equal(
        sscanf(from, "below it from step %d on; the curves cross 1 time", &step), 1);
    assert_true(step >= 48 && step <= 52);
    assert_says(row, "the data settings differ");
    assert_says(table, "&#60;i&#62;</th><td>-</td>");
    assert_says(table, "no step in common</td><td>the settings of one are not known");
    free(page);
    free(said);
}

// ---- many steps, many runs

static outcome shell(void **state, const char *script) {
    static const setting sh = {.program = "/bin/sh"};
    return run_with(state, &sh, LIST("-c", script, "sh", TR_PROGRAM));
}

// Many steps: the least and the most of each point stay.
static void test_thinned(void **state) {
    enum { STEPS = 30000, HIGH = 12345, LOW = 23456 };
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    for (int i = 1; i <= STEPS; i++) {
        double loss = i == HIGH ? 1000 : i == LOW ? -1000 : 1 + 1.0 / i;
        fprintf(to, "{\"step\": %d, \"loss\": %g, \"skipped\": %s}\n", i, loss,
                i == 77 ? "true" : "false");
    }
    fclose(to);
    metrics(state, "out", text);
    free(text);
    char *said = succeed(state, LIST("report", "out", "--out", "p.html"));
    char *page = page_of(state, "p.html");
    json_t *data = data_of(page);
    const json_t *loss = series(data, 0, "loss");
    size_t points = json_array_size(json_object_get(loss, "x"));
    double least = 0, most = 0;
    assert_true(points > 400 && points <= 1024);
    assert_int_equal(number_in(loss, "count"), STEPS);
    for (size_t i = 0; i < points; i++) {
        least = at(loss, "least", i) < least ? at(loss, "least", i) : least;
        most = at(loss, "most", i) > most ? at(loss, "most", i) : most;
    }
    assert_true(least == -1000 && most == 1000);
    const json_t *marks =
        json_object_get(json_array_get(json_object_get(data, "runs"), 0), "marks");
    assert_int_equal(json_array_size(marks), 1);
    assert_int_equal(field(json_array_get(marks, 0), 0), 77);
    json_decref(data);
    free(page);
    free(said);
}

// As many runs as there may be, with all that runs have: the page stays small, a plan
// that all of them share is in it once, and 8 of them have all their settings in it.
static void test_many(void **state) {
    static const char *words[PLOT_RUNS_MAX + 4] = {"report"};
    static char names[PLOT_RUNS_MAX][16];
    run_file(state, text_run, ", \"evaluation\": {\"every\": 10}");
    free(succeed(state, LIST("train", "run.json", "--steps", "1500")));
    outcome o = shell(state, "for i in $(seq 64); do mkdir r$i && cp out/metrics.jsonl "
                             "out/run.json r$i/; done");
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    for (int i = 0; i < PLOT_RUNS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "r%d", i + 1);
        words[i + 1] = names[i];
    }
    free(succeed(state, words));
    char *page = page_of(state, "report.html"); // of less than 1.5 MB
    json_t *data = data_of(page);
    const json_t *plans = json_object_get(data, "plans");
    assert_int_equal(json_array_size(plans), PLOT_RUNS_MAX);
    assert_true(json_is_object(json_array_get(plans, 0)));
    for (size_t i = 1; i < PLOT_RUNS_MAX; i++) {
        assert_true(json_is_integer(json_array_get(plans, i)));
        assert_int_equal(field(plans, i), 0);
        assert_true(number_in(series(data, i, "loss"), "count") == 1500);
        assert_true(json_array_size(json_object_get(series(data, i, "loss"), "x")) >=
                    30);
    }
    assert_says(page, "settings of r8<");
    assert_null(strstr(page, "settings of r9<"));
    json_decref(data);
    free(page);
}

// ---- what goes wrong

static void test_refused(void **state) {
    metrics(state, "empty", "{\"step\": 1, \"lr\": 0.1}\n");
    metrics(state, "good", "{\"step\": 1, \"loss\": 0.1}\n");
    mkdir(file_path(state, "nothing"), 0777);
    fail_with(state, NULL, LIST("report"), 2, LIST("OUT"));
    fail_with(state, NULL, LIST("report", "nothing"), 5, LIST("nothing/metrics.jsonl"));
    fail_with(state, NULL, LIST("report", "empty"), 4, LIST("no step with a loss"));
    fail_with(state, NULL, LIST("report", "none.json"), 2, LIST("none.json"));
    fail_with(state, NULL, LIST("report", "good", "--out", "no/p.html"), 5,
              LIST("no/p.html"));
    // A page that is there stays whole where a new one has no room.
    file_text(state, "p.html", "old");
    setting full = {.file_limit = 20000};
    fail_with(state, &full, LIST("report", "good", "--out", "p.html"), 5,
              LIST("p.html"));
    char *page = page_of(state, "p.html");
    assert_string_equal(page, "old");
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_run),      TEST(test_plan_alone), TEST(test_time),
        TEST(test_critical), TEST(test_hostile),    TEST(test_beside),
        TEST(test_passes),   TEST(test_thinned),    TEST(test_many),
        TEST(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
