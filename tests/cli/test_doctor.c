// What tranche doctor finds: every line says what it means, and what is in the way has
// what mends it.
#include "command.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int entries(void **state) {
    int count = 0;
    DIR *dir = opendir(*state);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

// The first finding of that name; the test fails where there is none.
static const json_t *find(const json_t *all, const char *name) {
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(all, "findings"), i, one) {
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0) {
            return one;
        }
    }
    fail_msg("no finding \"%s\"", name);
    return NULL;
}

static const char *text_of(const json_t *one, const char *key) {
    const char *text = json_string_value(json_object_get(one, key));
    return text ? text : "";
}

static void test_findings(void **state) {
    static const char *const areas[] = {"processor", "threads",   "limits",
                                        "memory",    "disk",      "ranks",
                                        "GPU",       "libraries", "caches"};
    enum { AREAS = sizeof areas / sizeof *areas };
    outcome o = run(state, LIST("doctor", "--json"));
    assert_string_equal(o.err, "");
    json_t *all = json_loads(o.out, JSON_REJECT_DUPLICATES, NULL), *one;
    assert_non_null(all);
    int of[AREAS] = {0}, ok = 0, note = 0, bad = 0;
    size_t i;
    json_array_foreach(json_object_get(all, "findings"), i, one) {
        const char *health = text_of(one, "health");
        ok += strcmp(health, "ok") == 0;
        note += strcmp(health, "note") == 0;
        bad += strcmp(health, "bad") == 0;
        assert_true(strlen(text_of(one, "value")) > 0);
        assert_true(strlen(text_of(one, "meaning")) > 10);
        assert_true(strcmp(health, "ok") == 0 || strlen(text_of(one, "mend")) > 2);
        for (int a = 0; a < AREAS; a++) {
            of[a] += strcmp(text_of(one, "area"), areas[a]) == 0;
        }
    }
    for (int a = 0; a < AREAS; a++) {
        assert_true(of[a] > 0);
    }
    assert_true(number_in(all, "ok") == ok && number_in(all, "note") == note &&
                number_in(all, "bad") == bad);
    assert_int_equal(ok + note + bad,
                     json_array_size(json_object_get(all, "findings")));
    assert_int_equal(o.status, bad > 0);
    json_decref(all);
    outcome_free(&o);
}

static void test_text(void **state) {
    outcome o = run(state, LIST("doctor"));
    assert_says(o.out, "processor\n  ");
    assert_says(o.out, "\n  ok    kernels: ");
    assert_says(o.out, "\ndisk\n  ");
    assert_says(o.out, "written, ");
    assert_null(strchr(o.out, '\x1b'));
    assert_int_equal(entries(state), 0); // what was measured with is gone
    outcome_free(&o);
}

static void test_threads_that_are_held_back(void **state) {
    static const setting one = {.environment = {"OMP_NUM_THREADS=0"}};
    outcome o = run_with(state, &one, LIST("doctor", "--json"));
    json_t *all = json_loads(o.out, 0, NULL);
    const json_t *found = find(all, "OMP_NUM_THREADS");
    assert_string_equal(text_of(found, "health"), "note");
    assert_string_equal(text_of(found, "mend"), "unset OMP_NUM_THREADS");
    json_decref(all);
    outcome_free(&o);
}

// Where nothing can be written no run can begin: it says so, and so does the status.
static void test_no_room(void **state) {
    static const setting small = {.file_limit = 1000};
    outcome o = run_with(state, &small, LIST("doctor", "--json"));
    assert_int_equal(o.status, 1);
    json_t *all = json_loads(o.out, 0, NULL);
    assert_string_equal(text_of(find(all, "current folder"), "health"), "bad");
    assert_says(text_of(find(all, "current folder"), "value"), "File too large");
    assert_string_equal(text_of(find(all, "size of files"), "mend"),
                        "ulimit -f unlimited");
    json_decref(all);
    outcome_free(&o);
    assert_int_equal(entries(state), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_findings),
        TEST(test_text),
        TEST(test_threads_that_are_held_back),
        TEST(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
