// The writer of JSON: commas, lines, texts with what must be escaped, numbers that JSON
// does not have; jansson reads all of it.
#include "base/json_writer.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct page {
    char *text;
    size_t bytes;
    tr_json_writer w;
} page;

static void page_open(page *p) {
    *p = (page){0};
    FILE *to = open_memstream(&p->text, &p->bytes);
    assert_non_null(to);
    p->w = tr__json_writer(to);
}

static void check_page(page *p, const char *expected) {
    assert_int_equal(fclose(p->w.to), 0);
    assert_string_equal(p->text, expected);
    json_t *read = json_loads(p->text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(read);
    json_decref(read);
    free(p->text);
}

static void test_commas_and_lines(void **state) {
    page p;
    (void)state;
    page_open(&p);
    tr__json_open(&p.w, '{');
    tr__json_put_integer(&p.w, "a", -7);
    tr__json_put_open(&p.w, "b", '[');
    tr__json_add_bool(&p.w, true);
    tr__json_add_null(&p.w);
    tr__json_open(&p.w, '{');
    tr__json_close(&p.w, '}');
    tr__json_close(&p.w, ']');
    tr__json_line(&p.w, 4);
    tr__json_put_open(&p.w, "c", '[');
    tr__json_line(&p.w, 8);
    tr__json_add_text(&p.w, "x");
    tr__json_line(&p.w, 8);
    tr__json_add_text(&p.w, "y");
    tr__json_line(&p.w, 0);
    tr__json_close(&p.w, ']');
    tr__json_put_bool(&p.w, "d", false);
    tr__json_close(&p.w, '}');
    check_page(&p,
               "{\"a\": -7, \"b\": [true, null, {}],\n    \"c\": [\n        \"x\",\n"
               "        \"y\"\n], \"d\": false}");
}

static void test_texts(void **state) {
    page p;
    (void)state;
    page_open(&p);
    tr__json_open(&p.w, '{');
    tr__json_put_text(&p.w, "a \"key\"", "\\ and \" and \n");
    tr__json_put_text(&p.w, "", "");
    tr__json_close(&p.w, '}');
    assert_int_equal(fflush(p.w.to), 0);
    json_t *read = json_loads(p.text, 0, NULL);
    const char *text = json_string_value(json_object_get(read, "a \"key\""));
    assert_string_equal(text, "\\ and \" and \n");
    json_decref(read);
    fclose(p.w.to);
    free(p.text);
}

static void test_numbers(void **state) {
    page p;
    (void)state;
    page_open(&p);
    tr__json_open(&p.w, '[');
    tr__json_add_real(&p.w, 0.1);
    tr__json_add_real(&p.w, INFINITY);
    tr__json_add_fixed(&p.w, 2.0 / 3);
    tr__json_add_fixed(&p.w, NAN);
    tr__json_add_integer(&p.w, INT64_MIN);
    tr__json_close(&p.w, ']');
    check_page(&p, "[0.1, null, 0.667, null, -9223372036854775808]");
}

// So many digits; whole numbers without a point, beyond 2^53 with an exponent.
static void test_digits(void **state) {
    page p;
    (void)state;
    page_open(&p);
    tr__json_open(&p.w, '[');
    tr__json_add_digits(&p.w, 1234567, 4);
    tr__json_add_digits(&p.w, INFINITY, 4);
    tr__json_add_whole(&p.w, 0x1p53 - 1);
    tr__json_add_whole(&p.w, 0x1p53);
    tr__json_add_whole(&p.w, NAN);
    tr__json_close(&p.w, ']');
    check_page(&p, "[1.235e+06, null, 9007199254740991, 9.0071992547409920e+15, null]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_commas_and_lines),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
