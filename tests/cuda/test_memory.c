// The device's arena: in pages it grows where it is, and copies nothing; where the
// driver has no pages, into a larger place.
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "base/arena.h"
#include "cuda/device.h"
#include "train/trial.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 2 << 20, MARK = 1000, SIZES = 4 };
static const size_t sizes[SIZES] = {3000, PAGE + 1, 5 * PAGE, 5 * PAGE + 64};

static void copy(void *to, const void *from, size_t bytes) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    assert_int_equal(driver->copy(to, from, bytes, NULL), 0);
    assert_int_equal(driver->stream_wait(NULL), 0);
}

static void assert_bytes(const char *at, size_t bytes, int value) {
    char *seen = malloc(bytes);
    assert_non_null(seen);
    copy(seen, at, bytes);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(seen[i], value);
    }
    free(seen);
}

// What is behind the old end is zeros, and what was before it is there.
static void grow(tr_arena *arena, size_t bytes) {
    tr_error err = {0};
    size_t before = tr__arena_bytes(arena);
    trial_ok(tr__arena_grow(arena, bytes, &err), &err);
    char *base = tr__arena_view(arena, 0, bytes);
    assert_bytes(base, MARK, 7);
    assert_bytes(base + MARK, before - MARK, 0);
    assert_bytes(base + before, bytes - before, 0);
}

static tr_arena *begin(size_t bytes) {
    tr_arena *arena = NULL;
    tr_error err = {0};
    char marks[MARK];
    memset(marks, 7, sizeof marks);
    trial_ok(tr__arena_create_from(&tr__cuda_memory, "device", bytes, &arena, &err),
             &err);
    char *base = tr__arena_view(arena, 0, bytes);
    assert_bytes(base, bytes, 0);
    copy(base, marks, sizeof marks);
    return arena;
}

static void pages_stay_where_they_are(void **state) {
    (void)state;
    tr_arena *arena = begin(sizes[0]);
    const char *base = tr__arena_view(arena, 0, 0);
    for (int i = 1; i < SIZES; i++) {
        int64_t moved = test_device_moved();
        tr_error err = {0};
        trial_ok(tr__arena_grow(arena, sizes[i], &err), &err);
        assert_int_equal(test_device_moved(), moved);
        assert_ptr_equal(tr__arena_view(arena, 0, 0), base);
        assert_int_equal(test_device_taken(), (sizes[i] + PAGE - 1) / PAGE * PAGE);
    }
    tr__arena_destroy(arena);
    assert_int_equal(test_device_taken(), 0);
    arena = begin(sizes[0]);
    for (int i = 1; i < SIZES; i++) {
        grow(arena, sizes[i]);
    }
    tr__arena_destroy(arena);
}

static void without_pages_all_moves(void **state) {
    (void)state;
    test_device_set_paged(false);
    tr_arena *arena = begin(sizes[0]);
    for (int i = 1; i < SIZES; i++) {
        int64_t moved = test_device_moved();
        grow(arena, sizes[i]);
        assert_true(test_device_moved() >= moved + (int64_t)sizes[i - 1]);
    }
    assert_int_equal(test_device_taken(), 0);
    tr__arena_destroy(arena);
    test_device_set_paged(true);
}

// More than the device has: the arena is as it was.
static void no_more_than_there_is(void **state) {
    tr_error err = {0};
    (void)state;
    test_device_set_memory(4 * PAGE);
    tr_arena *arena = begin(sizes[0]);
    assert_int_equal(tr__arena_grow(arena, 4 * PAGE + 1, &err), TR_MEMORY);
    assert_non_null(strstr(err.message, "no memory for the device arena of 8388609"));
    assert_int_equal(test_device_taken(), PAGE);
    grow(arena, 4 * PAGE);
    tr__arena_destroy(arena);
    test_device_set_memory((size_t)16 << 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_stay_where_they_are),
        cmocka_unit_test(without_pages_all_moves),
        cmocka_unit_test(no_more_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
