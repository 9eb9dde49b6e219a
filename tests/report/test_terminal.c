// What a terminal is shown of others' text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(const char *given, const char *wanted, bool terminal, bool lines) {
    char *shown = NULL;
    size_t bytes = 0;
    report_clean text = {.terminal = terminal, .lines = lines};
    text.to = open_memstream(&shown, &bytes);
    assert_non_null(text.to);
    for (const char *c = given; *c; c++) {
        report_clean_put(&text, (unsigned char)*c);
    }
    report_clean_end(&text);
    assert_int_equal(fclose(text.to), 0);
    assert_string_equal(shown, wanted);
    free(shown);
}

static void controls_become_question_marks(void **state) {
    static const char *const rows[][2] = {
        {"model.bias", "model.bias"},
        {"gr\xc3\xb6\xc3\x9f"
         "er \xe2\x82\xac \xf0\x9f\x99\x82",
         "gr\xc3\xb6\xc3\x9f"
         "er \xe2\x82\xac \xf0\x9f\x99\x82"},
        {"a\x1b[2Jb\x7f", "a?[2Jb?"},
        {"\xc2\x9b"
         "31mred",
         "?31mred"}, // U+009B, the one-byte CSI
        {"abc\xe2\x80\xae"
         "fed",
         "abc?fed"},                        // U+202E, right to left
        {"\xe2\x81\xa6\xe2\x80\x8b", "??"}, // an isolate, a space without width
        {"\x9b"
         "31m",
         "?31m"}, // a stray byte
        {"\xc3"
         "a\xe2\x82",
         "?a?"},                                // cut short
        {"\xc0\x9b\xe0\x82\x9b", "???"},        // longer than it need be
        {"\xed\xa0\x80\xf4\x90\x80\x80", "??"}, // half a pair, beyond the last
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check(rows[i][0], rows[i][1], true, false);
        check(rows[i][0], rows[i][0], false, false); // a pipe gets the bytes
    }
    check("a\tb\nc\r", "a?b?c?", true, false);
    check("a\tb\nc\r", "a\tb\nc?", true, true);
}

// Ranks share a stream: a line of one must not have another's within it.
static void a_line_is_one_write(void **state) {
    int ends[2];
    char read_back[256] = "";
    (void)state;
    assert_int_equal(pipe2(ends, O_DIRECT), 0); // what one write wrote is read at once
    FILE *to = fdopen(ends[1], "w");
    assert_non_null(to);
    assert_int_equal(setvbuf(to, NULL, _IONBF, 0), 0); // as stderr is
    report_print_line(to, "warning: ",
                      "rank 1 is slow:\n    gr\xc3\xb6\xc3\x9f"
                      "er");
    assert_true(read(ends[0], read_back, sizeof read_back - 1) > 0);
    assert_string_equal(read_back, "warning: rank 1 is slow:\n    gr\xc3\xb6\xc3\x9f"
                                   "er\n");
    fclose(to);
    close(ends[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_become_question_marks),
        cmocka_unit_test(a_line_is_one_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
