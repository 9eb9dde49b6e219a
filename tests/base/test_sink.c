// What is printed goes to the caller's sink, piece by piece, and no further than it
// takes it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sink.h"

#include <string.h>

enum { LINES = 1000 };

typedef struct taken {
    size_t room, bytes; // that it takes at most, and has
    char text[16 * LINES];
} taken;

static bool take(void *user, const char *text, size_t bytes) {
    taken *t = user;
    if (t->bytes + bytes > t->room) {
        return false;
    }
    memcpy(t->text + t->bytes, text, bytes);
    t->bytes += bytes;
    return true;
}

static tr_status print(const void *what, FILE *to, tr_error *err) {
    for (int i = 0; i < LINES; i++) {
        fprintf(to, "%s %d\n", (const char *)what, i);
    }
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write") : TR_OK;
}

static tr_status print_half(const void *what, FILE *to, tr_error *err) {
    fputs(what, to);
    return tr_fail(err, TR_MEMORY, "no memory for the rest");
}

static void all_of_it_arrives(void **state) {
    static taken t = {.room = sizeof t.text};
    const tr_sink to = {take, &t};
    tr_error err = {0};
    (void)state;
    assert_int_equal(tr__sink_print(&to, "tr_f", print, "line", &err), TR_OK);
    assert_memory_equal(t.text, "line 0\nline 1\n", 14);
    assert_memory_equal(t.text + t.bytes - 9, "line 999\n", 9);
}

static void errors_come_back(void **state) {
    static taken full = {.room = 100}, t = {.room = sizeof t.text};
    const tr_sink small = {take, &full}, to = {take, &t}, none = {NULL, &t};
    tr_error err = {0}, half = {0}, null = {0}, nothing = {0}, empty = {0};
    (void)state;
    assert_int_equal(tr__sink_print(&small, "tr_f", print, "line", &err), TR_IO);
    assert_non_null(strstr(err.message, "tr_f: the sink takes no more"));
    assert_int_equal(tr__sink_print(&to, "tr_f", print_half, "half", &half), TR_MEMORY);
    assert_string_equal(half.message, "no memory for the rest");
    assert_int_equal(tr__sink_print(NULL, "tr_f", print, "line", &null), TR_USAGE);
    assert_non_null(strstr(null.message, "tr_f"));
    assert_int_equal(tr__sink_print(&to, "tr_f", print, NULL, &nothing), TR_USAGE);
    assert_int_equal(tr__sink_print(&none, "tr_f", print, "line", &empty), TR_USAGE);
    assert_non_null(strstr(empty.message, "write"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_arrives),
        cmocka_unit_test(errors_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
