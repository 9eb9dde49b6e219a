// The device's arena: in pages it grows where it is, and copies nothing; where the
// driver has no pages, into a larger place. The host's, which the device reaches. What
// libraries are lent.
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
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

// ---- of the host

static tr_arena *begin_pinned(size_t bytes) {
    tr_arena *arena = NULL;
    tr_error err = {0};
    trial_ok(
        tr__arena_create_from(&tr__cuda_pinned_memory, "host", bytes, &arena, &err),
        &err);
    memset(tr__arena_view(arena, 0, MARK), 7, MARK);
    return arena;
}

// The device reaches what is there, where it is now.
static void assert_reached(tr_arena *arena, size_t bytes) {
    const char *at = tr__arena_view(arena, 0, bytes);
    assert_int_equal(tr__arena_bytes(arena), bytes);
    assert_true(test_device_reaches(at, bytes));
    for (int i = 0; i < MARK; i++) {
        assert_int_equal(at[i], 7);
    }
}

static void what_grows_stays_in_reach(void **state) {
    tr_error err = {0};
    (void)state;
    tr_arena *arena = begin_pinned(sizes[0]);
    assert_reached(arena, sizes[0]);
    for (int i = 1; i < SIZES; i++) {
        trial_ok(tr__arena_grow(arena, sizes[i], &err), &err);
        assert_reached(arena, sizes[i]);
    }
    tr__arena_destroy(arena);
}

// Neither the system's refusal nor CUDA's takes away what the device has reached.
static void what_cannot_grow_stays_in_reach(void **state) {
    (void)state;
    for (int of_cuda = 0; of_cuda < 2; of_cuda++) {
        tr_error err = {0};
        tr_arena *arena = begin_pinned(sizes[1]);
        if (of_cuda) {
            test_device_fail(TEST_PIN, 1, true);
        }
        size_t bytes = of_cuda ? sizes[2] : SIZE_MAX - PAGE;
        assert_int_equal(tr__arena_grow(arena, bytes, &err), TR_MEMORY);
        assert_reached(arena, sizes[1]);
        tr_error none = {0};
        trial_ok(tr__arena_grow(arena, sizes[3], &none), &none);
        assert_reached(arena, sizes[3]);
        tr__arena_destroy(arena);
    }
}

// ---- of libraries

// A plan's room for them begins at any multiple of 64. Of it they are lent as much as
// NVIDIA recommends, from a multiple of 256 on.
static void libraries_work_at_multiples_of_256(void **state) {
    const tr_backend *backend = tr__backend(TR_BACKEND_CUDA);
    int64_t all = backend->scratch(TR_CUDA_SM_90), bytes = 0;
    char *room = aligned_alloc(256, (size_t)all + 256);
    tr_device_queue *queue = NULL;
    tr_error err = {0};
    (void)state;
    assert_non_null(room);
    trial_ok(backend->queues->create(1, &queue, &err), &err);
    for (int at = 0; at < 256; at += 64) {
        backend->queues->lend(queue, room + at, all);
        const char *lent = tr__cuda_scratch(queue, &bytes);
        assert_int_equal((uintptr_t)lent % 256, 0);
        assert_int_equal(bytes, 32 << 20);
        assert_true(lent >= room + at && lent + bytes <= room + at + all);
    }
    backend->queues->destroy(queue);
    free(room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_stay_where_they_are),
        cmocka_unit_test(without_pages_all_moves),
        cmocka_unit_test(no_more_than_there_is),
        cmocka_unit_test(what_grows_stays_in_reach),
        cmocka_unit_test(what_cannot_grow_stays_in_reach),
        cmocka_unit_test(libraries_work_at_multiples_of_256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
