// Bookkeeping memory: sizes that overflow, and the Nth call that fails.
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void memory_is_zeroed(void **state) {
    (void)state;
    unsigned char *memory = tr__calloc(100, 3);
    assert_non_null(memory);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(memory[i], 0);
    }
    tr__free(memory);
    memory = tr__calloc(0, 0); // nothing is no failure
    assert_non_null(memory);
    tr__free(memory);
    tr__free(NULL);
}

static void products_that_overflow_are_refused(void **state) {
    (void)state;
    assert_null(tr__calloc(SIZE_MAX / 2, 3));
    assert_null(tr__realloc(NULL, SIZE_MAX / 2, 3));
    void *array = NULL;
    size_t capacity = 0;
    assert_false(tr__grow(&array, &capacity, SIZE_MAX / 2, 3));
    assert_null(array);
    assert_int_equal(capacity, 0);
}

static void arrays_grow(void **state) {
    (void)state;
    int *array = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(tr__grow((void **)&array, &capacity, (size_t)i + 1, sizeof *array));
        assert_true(capacity > (size_t)i);
        array[i] = i;
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(array[i], i);
    }
    int64_t before = tr__memory_calls();
    assert_true(tr__grow((void **)&array, &capacity, 1, sizeof *array));
    assert_int_equal(tr__memory_calls(), before); // it was large enough
    assert_true(tr__grow((void **)&array, &capacity, 100000, sizeof *array));
    assert_true(capacity >= 100000);
    tr__free(array);
}

static void texts(void **state) {
    (void)state;
    char *copy = tr__strdup("abc");
    char *made = tr__format("%s-%08d", "step", 42);
    assert_string_equal(copy, "abc");
    assert_string_equal(made, "step-00000042");
    tr__free(copy);
    tr__free(made);
}

static void the_nth_call_fails(void **state) {
    (void)state;
    int64_t before = tr__memory_calls();
    tr__memory_fail_at(3);
    void *first = tr__calloc(1, 1);
    char *second = tr__strdup("x");
    assert_non_null(first);
    assert_non_null(second);
    assert_null(tr__format("third"));
    void *fourth = tr__realloc(NULL, 1, 1);
    assert_non_null(fourth); // only that one
    assert_int_equal(tr__memory_calls() - before, 4);
    tr__free(first);
    tr__free(second);
    tr__free(fourth);
}

static void each_kind_of_call_can_fail(void **state) {
    (void)state;
    int *array = tr__calloc(1, sizeof *array);
    size_t capacity = 1;
    *array = 7;
    tr__memory_fail_at(1);
    assert_null(tr__calloc(1, 1));
    tr__memory_fail_at(1);
    assert_null(tr__realloc(array, 2, sizeof *array));
    tr__memory_fail_at(1);
    assert_null(tr__strdup("x"));
    tr__memory_fail_at(1);
    assert_false(tr__grow((void **)&array, &capacity, 2, sizeof *array));
    assert_int_equal(capacity, 1);
    assert_int_equal(*array, 7); // as it was
    tr__memory_fail_at(1);
    tr__memory_fail_at(0); // called off
    char *text = tr__strdup("x");
    assert_non_null(text);
    tr__free(text);
    tr__free(array);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(products_that_overflow_are_refused),
        cmocka_unit_test(arrays_grow),
        cmocka_unit_test(texts),
        cmocka_unit_test(the_nth_call_fails),
        cmocka_unit_test(each_kind_of_call_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
