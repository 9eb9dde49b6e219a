// Labels: source
// docs/run-file.md names every key of a run file, with the default that it has.
#include "run/keys/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 20, ROW_MAX = 512 };

static const char path[] = TR_SOURCE_DIR "/docs/run-file.md";
static const char table_head[] = "| key | default | meaning |";

static char *text; // of the page

static int read_page(void **state) {
    (void)state;
    FILE *file = fopen(path, "rb");
    text = calloc(TEXT_MAX, 1);
    if (!file || !text) {
        return -1;
    }
    size_t bytes = fread(text, 1, TEXT_MAX - 1, file);
    fclose(file);
    return bytes > 0 && bytes < TEXT_MAX - 1 ? 0 : -1;
}

static int free_page(void **state) {
    (void)state;
    free(text);
    return 0;
}

// Calls `visit` for every key of the tables; returns how many times it said false.
static int visit_keys(bool (*visit)(const tr_key *key)) {
    int faults = 0;
    const tr_key *key;
    for (size_t i = 0; (key = tr__key_at(tr__key_tables, TR_KEY_TABLES, i)); i++) {
        faults += !visit(key);
    }
    return faults;
}

// Does it do something, in a file or where a program sets it?
static bool works(const tr_key *key) {
    return key->status == TR_KEY_WORKS || key->status == TR_KEY_OF_CALL;
}

static bool row_is_there(const tr_key *key) {
    char row[ROW_MAX];
    if (!works(key)) {
        return true;
    }
    snprintf(row, sizeof row, "\n| `%s` | %s%s%s |", key->path,
             key->fallback ? "`" : "", key->fallback ? key->fallback : "none",
             key->fallback ? "`" : "");
    if (!strstr(text, row)) {
        print_error("%s: no row that begins with%s\n", path, row);
        return false;
    }
    return true;
}

// The section under `heading`, up to the next one; *bytes: its length.
static const char *section(const char *heading, size_t *bytes) {
    const char *begin = strstr(text, heading);
    assert_non_null(begin);
    begin += strlen(heading);
    const char *end = strstr(begin, "\n## ");
    *bytes = end ? (size_t)(end - begin) : strlen(begin);
    return begin;
}

// Is the key, or a group that it is in ("csv_monitor.*"), named there?
static bool is_named(const char *heading, const tr_key *key) {
    size_t bytes, length = strlen(key->path);
    const char *in = section(heading, &bytes);
    char name[ROW_MAX];
    snprintf(name, sizeof name, "`%s`", key->path);
    bool found = memmem(in, bytes, name, strlen(name)) != NULL;
    for (size_t i = 0; i < length && !found; i++) {
        if (key->path[i] == '.') {
            snprintf(name, sizeof name, "`%.*s.*`", (int)i, key->path);
            found = memmem(in, bytes, name, strlen(name)) != NULL;
        }
    }
    if (!found) {
        print_error("%s: `%s` is not under%s\n", path, key->path, heading);
    }
    return found;
}

static bool rest_is_named(const tr_key *key) {
    switch (key->status) {
    case TR_KEY_WORKS:
    case TR_KEY_OF_CALL:
        return true;
    case TR_KEY_NO_MEANING:
        return is_named("\n## Keys without an effect", key);
    case TR_KEY_NOT_YET:
    case TR_KEY_REFUSED:
        return is_named("\n## Keys that are not yet", key);
    }
    return false;
}

static const char *row_wanted; // "`data.order`"

static bool is_other(const tr_key *key) {
    size_t length = strlen(key->path);
    return !works(key) || strncmp(row_wanted, key->path, length) != 0 ||
           row_wanted[length] != '`';
}

static void test_rows_of_working_keys(void **state) {
    (void)state;
    assert_int_equal(visit_keys(row_is_there), 0);
}

static void test_names_of_other_keys(void **state) {
    (void)state;
    assert_int_equal(visit_keys(rest_is_named), 0);
}

// No row tells of a key that is not there, or does not work.
static void test_rows_have_a_key(void **state) {
    (void)state;
    int rows = 0, faults = 0;
    for (const char *at = text; (at = strstr(at, table_head)) != NULL;) {
        at = strchr(at, '\n') + 1; // the line under the head
        at = strchr(at, '\n') + 1; // the first row
        while (strncmp(at, "| `", 3) == 0) {
            row_wanted = at + 3;
            if (visit_keys(is_other) == 0) {
                print_error("%s: no such key that works: %.*s\n", path,
                            (int)strcspn(at, "\n"), at);
                faults++;
            }
            rows++;
            at = strchr(at, '\n') + 1;
        }
    }
    assert_int_equal(faults, 0);
    assert_true(rows > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_working_keys),
        cmocka_unit_test(test_names_of_other_keys),
        cmocka_unit_test(test_rows_have_a_key),
    };
    return cmocka_run_group_tests(tests, read_page, free_page);
}
