// The tables themselves: whatever they promise, they keep.
#include "config/helper.h"

#include "run/keys/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static size_t collect(const tr_key **keys, size_t capacity) {
    const tr_key *key;
    size_t count = 0;
    for (; (key = tr__key_at(tr__key_tables, TR_KEY_TABLES, count)) != NULL; count++) {
        assert_true(count < capacity);
        keys[count] = key;
    }
    return count;
}

static bool share(const char *const *a, const char *const *b) {
    for (; a && *a; a++) {
        for (const char *const *other = b; other && *other; other++) {
            if (strcmp(*a, *other) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool is_group_of(const char *group, const char *path) {
    size_t length = strlen(group);
    return strncmp(group, path, length) == 0 && path[length] == '.' &&
           path[length + 1] != '*';
}

static void test_tables(void **state) {
    (void)state;
    const tr_key *keys[1000];
    size_t count = collect(keys, 1000);
    assert_true(count > 200);
    for (size_t i = 0; i < count; i++) {
        const tr_key *key = keys[i];
        assert_non_null(key->doc);
        assert_true(!key->idle || key->why); // which is said where it has no effect
        assert_true(key->types != 0);
        assert_true(strlen(key->path) < TR_CONFIG_PATH_MAX / 2);
        assert_true((key->where == NULL) == (key->where_key == NULL));
        assert_true(key->min <= key->max);
        // Alternatives that JSON could not tell apart.
        assert_false(key->types & TR_KEY_SIZE &&
                     key->types & (TR_KEY_INT | TR_KEY_TEXT));
        for (size_t j = 0; j < count; j++) {
            if (i != j && strcmp(key->path, keys[j]->path) == 0) {
                assert_true(key->where && keys[j]->where);
                assert_false(share(key->where, keys[j]->where));
            }
            assert_false(is_group_of(key->path, keys[j]->path));
        }
    }
    // Every default is checked against its own key when a config is made.
    tr__config_destroy(good_config("{}", NULL));
}

static void expect_mistake(tr_config *config, const char *words) {
    tr_error err = {0};
    char *text = NULL;
    assert_int_equal(tr__config_settle(config, &err), TR_INTERNAL);
    assert_non_null(strstr(err.message, words));
    err = (tr_error){0};
    assert_int_equal(tr__config_write_resolved(config, &text, &err), TR_INTERNAL);
    assert_non_null(strstr(err.message, words));
    assert_null(text);
    tr__config_destroy(config);
}

// The program's own mistakes: no value, and an error before the run begins.
static void test_mistakes(void **state) {
    (void)state;
    tr_config *config = good_config("{}", NULL);
    assert_int_equal(tr__config_int(config, "no.such_key"), 0);
    assert_null(tr__config_text(config, "steps")); // the first mistake is told
    expect_mistake(config, "no.such_key is read, but is in no table");

    config = good_config("{\"steps\": 3}", NULL);
    assert_int_equal(tr__config_int(config, "steps"), 3);
    assert_null(tr__config_text(config, "steps"));
    expect_mistake(config, "steps is read as a type");

    config = good_config("{\"data\": {\"train\": [\"a\"]}}", NULL);
    assert_string_equal(tr__config_text_at(config, "data.train", 0), "a");
    assert_null(tr__config_text_at(config, "data.train", 1));
    expect_mistake(config, "data.train has fewer elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables),
                                       cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
