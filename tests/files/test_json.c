// JSON as text where memory runs out at any moment: all of it, or none, and no crash.
#include "base/memory.h"
#include "files/safetensors/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int calls, fail_at; // of jansson's allocations; 0: none fails

static void *allocate(size_t bytes) {
    return ++calls == fail_at ? NULL : malloc(bytes);
}

static const char source[] =
    "{\"a\": [1, 2.5, null, true, {\"b\": \"a text that is longer than others\", "
    "\"c\": {\"d\": [[], {}, \"\\u00e9\\n\"]}}], \"z\": -9007199254740993, \"y\": {}}";

// The text is that of another tree of the same content, compared by jansson.
static void assert_same(const char *text, const json_t *root) {
    json_t *back = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(back);
    assert_true(json_equal(back, root));
    json_decref(back);
}

// With a text for which any reader's buffer has to grow many times.
static json_t *make_tree(void) {
    enum { LONG = 100000 };
    json_t *root = json_loads(source, 0, NULL);
    char *text = malloc(LONG + 1);
    assert_true(root && text);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    assert_int_equal(json_object_set_new(root, "long", json_string(text)), 0);
    free(text);
    return root;
}

static void all_or_nothing(void **state) {
    static const size_t flags[] = {JSON_COMPACT, JSON_INDENT(2),
                                   JSON_COMPACT | JSON_SORT_KEYS};
    (void)state;
    json_set_alloc_funcs(allocate, free);
    json_t *root = make_tree();
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char *text = NULL;
        int failures = -1;
        while (!text) {
            calls = 0;
            fail_at = ++failures + 1;
            text = tr__json_text(root, flags[i]);
            assert_true(failures < 1000);
        }
        fail_at = 0;
        assert_same(text, root);
        tr__free(text);
        tr__memory_fail_at(1);
        assert_null(tr__json_text(root, flags[i]));
        tr__memory_fail_at(0);
    }
    json_decref(root);
    assert_null(tr__json_text(NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_or_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
