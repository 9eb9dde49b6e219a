// Sizes, nearest names, patterns.
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void edit_distances(void **state) {
    (void)state;
    assert_int_equal(tr__edit_distance("", ""), 0);
    assert_int_equal(tr__edit_distance("", "abc"), 3);
    assert_int_equal(tr__edit_distance("abc", ""), 3);
    assert_int_equal(tr__edit_distance("kitten", "sitting"), 3);
    assert_int_equal(tr__edit_distance("train", "tarin"), 1); // a swap
    assert_int_equal(tr__edit_distance("same", "same"), 0);
    char longer[100], longest[65];
    memset(longer, 'a', sizeof longer - 1);
    longer[99] = '\0';
    memcpy(longest, longer, 64);
    longest[64] = '\0';
    assert_int_equal(tr__edit_distance(longer, "a"), 255);
    assert_int_equal(tr__edit_distance(longest, longest), 0);
}

static void nearest_names(void **state) {
    (void)state;
    static const char *const names[] = {"train_batch_size", "steps", "seed", "lr"};
    enum { COUNT = sizeof names / sizeof *names };
    assert_string_equal(tr__nearest("train_bacth_size", names, COUNT), names[0]);
    assert_string_equal(tr__nearest("step", names, COUNT), "steps");
    assert_string_equal(tr__nearest("lrr", names, COUNT), "lr");
    assert_null(tr__nearest("gradient_clipping", names, COUNT));
    assert_null(tr__nearest("steps", names, 0));
}

static void nothing_in_common_is_not_near(void **state) {
    (void)state;
    static const char *const names[] = {"m", "steps"};
    char word[1000];
    memset(word, 'q', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_null(tr__nearest(word, names, 2)); // both are "far", which is not near
    assert_null(tr__nearest("x", names, 2));
    assert_null(tr__nearest("", names, 2));
}

static void sizes_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"0", 0},
        {"1024", 1024},
        {"500MB", 500000000},
        {"6GiB", 6LL << 30},
        {"6gib", 6LL << 30},
        {"2.5 KiB", 2560},
        {"1K", 1024},
        {"3TB", 3000000000000},
        {"12B", 12},
        {"4611686018427387904", 1LL << 62},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t bytes = -1;
        assert_true(tr__parse_size(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void what_is_no_size_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",      "GiB", "-1",   "-1GiB", "6GiBs", "6 G B",      "1e30",
        "nan",   "inf", "1..2", "0x10",  "one",   "9999999TiB", "infinity",
        "12 34", "--1", "+-1",  "6Gi",   "1e400", "nan(1)"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t bytes = 77;
        if (tr__parse_size(bad[i], &bytes)) {
            fail_msg("'%s' is read as %lld", bad[i], (long long)bytes);
        }
        assert_int_equal(bytes, 77);
    }
}

static void sizes_are_printed(void **state) {
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } want[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {(1 << 20) - 1, "1.00 MiB"}, // not 1024.00 KiB
        {2480343613, "2.31 GiB"},
        {1LL << 50, "1.00 PiB"},
        {1LL << 62, "4096.00 PiB"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char text[32];
        tr__print_size(text, sizeof text, want[i].bytes);
        assert_string_equal(text, want[i].text);
    }
    char small[4];
    tr__print_size(small, sizeof small, 1536);
    assert_string_equal(small, "1.5");
}

static void patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"*.bias", "h.0.attn.bias", true},
        {"*.bias", "bias", false},
        {"h.*.ln_?.*", "h.11.ln_2.weight", true},
        {"h.*.ln_?.*", "h.11.ln_.weight", false},
        {"*ab", "aab", true},
        {"*ab", "aba", false},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "ac", false},
        {"**", "x", true},
        {"abc", "ab", false},
        {"ab", "abc", false},
        {"*a*", "*a*", true},
        {"h.[0-3].*", "h.2.bias", true},
        {"h.[0-3].*", "h.4.bias", false},
        {"h.[!0].*", "h.0.bias", false},
        {"h.[", "h.[", true}, // no bracket that closes: it stands for itself
        {"a\\*", "a*", true},
        {"a\\*", "ab", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (tr__glob_match(rows[i].pattern, rows[i].name) != rows[i].matches) {
            fail_msg("'%s' on '%s'", rows[i].pattern, rows[i].name);
        }
    }
}

// Many stars must not take exponential time.
static void patterns_do_not_explode(void **state) {
    (void)state;
    char name[20001], pattern[101];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 100; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[100] = '\0';
    assert_true(tr__glob_match(pattern, name));
    pattern[99] = 'b';
    assert_false(tr__glob_match(pattern, name));
}

// Every double comes back, by no more digits than it needs.
static void doubles_are_printed(void **state) {
    static const struct {
        double value;
        const char *text;
    } rows[] = {{4294967296.0, "4294967296"},
                {0.1, "0.1"},
                {-1.0 / 3, "-0.3333333333333333"},
                {1e300, "1e+300"},
                {0, "0"},
                {4.9406564584124654e-324, "5e-324"},
                {0x1.fffffffffffffp1023, "1.7976931348623157e+308"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TR_DOUBLE_TEXT_MAX];
        assert_string_equal(tr__print_double(text, rows[i].value), rows[i].text);
        assert_true(strtod(text, NULL) == rows[i].value);
    }
}

static void one_and_more(void **state) {
    (void)state;
    assert_string_equal(tr__plural(0), "s");
    assert_string_equal(tr__plural(1), "");
    assert_string_equal(tr__plural(2), "s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_and_more),
        cmocka_unit_test(edit_distances),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(nothing_in_common_is_not_near),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(sizes_are_printed),
        cmocka_unit_test(doubles_are_printed),
        cmocka_unit_test(patterns),
        cmocka_unit_test(patterns_do_not_explode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
