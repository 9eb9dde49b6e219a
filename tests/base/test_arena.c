// Arenas: alignment, zeros, the high-water mark, and views outside.
#include "base/arena.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void zeroed_and_aligned(void **state) {
    (void)state;
    enum { BYTES = 5 << 20 };
    tr_arena *arena = NULL;
    assert_int_equal(tr__arena_create("device", BYTES, &arena, NULL), TR_OK);
    unsigned char *all = tr__arena_view(arena, 0, BYTES);
    assert_int_equal((uintptr_t)all % (2 << 20), 0);
    for (size_t i = 0; i < BYTES; i += 4093) {
        assert_int_equal(all[i], 0);
    }
    all[0] = all[BYTES - 1] = 1; // the ends can be written
    assert_ptr_equal(tr__arena_view(arena, 4096, 1), all + 4096);
    tr__arena_destroy(arena);
    tr__arena_destroy(NULL);
}

static void high_water(void **state) {
    (void)state;
    tr_arena *arena = NULL;
    assert_int_equal(tr__arena_create("host", 1000, &arena, NULL), TR_OK);
    assert_int_equal(tr__arena_bytes(arena), 1000);
    assert_int_equal(tr__arena_high_water(arena), 0);
    tr__arena_view(arena, 100, 50);
    assert_int_equal(tr__arena_high_water(arena), 150);
    tr__arena_view(arena, 0, 20);
    assert_int_equal(tr__arena_high_water(arena), 150);
    tr__arena_view(arena, 1000, 0);
    assert_int_equal(tr__arena_high_water(arena), 1000);
    tr__arena_destroy(arena);
}

static void grows_with_what_it_holds(void **state) {
    (void)state;
    enum { BEFORE = 300000, AFTER = 5 << 20 };
    tr_arena *arena = NULL;
    assert_int_equal(tr__arena_create("device", BEFORE, &arena, NULL), TR_OK);
    unsigned char *old = tr__arena_view(arena, 0, BEFORE);
    for (size_t i = 0; i < BEFORE; i++) {
        old[i] = (unsigned char)(i % 251);
    }
    assert_int_equal(tr__arena_grow(arena, AFTER, NULL), TR_OK);
    assert_int_equal(tr__arena_bytes(arena), AFTER);
    unsigned char *all = tr__arena_view(arena, 0, AFTER);
    assert_int_equal((uintptr_t)all % (2 << 20), 0);
    for (size_t i = 0; i < AFTER; i++) {
        assert_int_equal(all[i], i < BEFORE ? i % 251 : 0);
    }
    assert_int_equal(tr__arena_grow(arena, BEFORE, NULL), TR_OK); // nothing to do
    assert_int_equal(tr__arena_bytes(arena), AFTER);
    assert_ptr_equal(tr__arena_view(arena, 0, 0), all);
    assert_int_equal(tr__arena_grow(arena, SIZE_MAX / 2, NULL), TR_MEMORY);
    assert_int_equal(tr__arena_bytes(arena), AFTER);
    assert_int_equal(all[BEFORE - 1], (BEFORE - 1) % 251);
    tr__arena_destroy(arena);
}

static void an_empty_arena(void **state) {
    (void)state;
    tr_arena *arena = NULL;
    assert_int_equal(tr__arena_create("host", 0, &arena, NULL), TR_OK);
    assert_non_null(tr__arena_view(arena, 0, 0));
    tr__arena_destroy(arena);
}

static void what_the_system_refuses(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - (2 << 20), SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tr_arena *arena = NULL;
        tr_error err = {0};
        assert_int_equal(tr__arena_create("device", sizes[i], &arena, &err), TR_MEMORY);
        assert_null(arena);
        assert_non_null(strstr(err.message, "device"));
    }
}

static void no_memory_for_the_record(void **state) {
    (void)state;
    tr_arena *arena = NULL;
    tr__memory_fail_at(1);
    assert_int_equal(tr__arena_create("device", 10, &arena, NULL), TR_MEMORY);
    assert_null(arena);
}

static void no_view_outside(void **state) {
    (void)state;
    tr_arena *arena = NULL;
    assert_int_equal(tr__arena_create("device", 1000, &arena, NULL), TR_OK);
    assert_null(tr__arena_view(arena, 1, 1000));
    assert_null(tr__arena_view(arena, 1001, 0));
    assert_null(tr__arena_view(arena, SIZE_MAX, 2)); // the sum would overflow
    assert_null(tr__arena_view(arena, 2, SIZE_MAX));
    assert_int_equal(tr__arena_high_water(arena), 0);
    assert_non_null(tr__arena_view(arena, 1000, 0));
    tr__arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_and_aligned),
        cmocka_unit_test(high_water),
        cmocka_unit_test(grows_with_what_it_holds),
        cmocka_unit_test(an_empty_arena),
        cmocka_unit_test(what_the_system_refuses),
        cmocka_unit_test(no_memory_for_the_record),
        cmocka_unit_test(no_view_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
