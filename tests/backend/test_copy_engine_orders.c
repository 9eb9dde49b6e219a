// Labels: threads
// The order of a copy engine's work, and its faults, on a file in memory that ends
// transfers in a random order.
#include "backend/copy_engine_model.h"
#include "backend/fake_nvme.h"

#include "backend/host/copy_engine_work.h"
#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PAGE = TR_CARRY_ALIGN, CHUNK = TR_NVME_CHUNK, ORDERS = 300 };

static tr_copy_engine *on(fake_nvme *fake, int64_t bytes) {
    tr_copy_engine *copy_engine = NULL;
    tr_error err = {0};
    if (tr__copy_engine_create_on(&fake->base, "/fake", bytes, true, &copy_engine,
                                  &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return copy_engine;
}

static int64_t start(tr_copy_engine *copy_engine, tr_carry_kind kind, const void *from,
                     void *to, int64_t bytes, int64_t offset) {
    tr_carry order = {kind, from, to, bytes, offset};
    return tr__copy_engine_start(copy_engine, &order);
}

static void check_model(fake_nvme *fake, uint64_t seed) {
    int left = -1;
    char *memory = page_memory(MODEL_MEMORY);
    fake->left_behind = &left;
    tr_copy_engine *copy_engine = on(fake, MODEL_FILE);
    model_check(copy_engine, true, ORDERS, seed, memory);
    assert_true(fake->most > 1);
    tr__copy_engine_destroy(copy_engine);
    assert_int_equal(left, 0);
    free(memory);
}

static void test_any_order_of_ends(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        check_model(fake_nvme_make(MODEL_FILE, seed), seed);
    }
}

static void test_transfers_in_parts(void **state) {
    (void)state;
    fake_nvme *fake = fake_nvme_make(MODEL_FILE, 4);
    fake->in_parts = true;
    fake->interrupt_every = 3;
    check_model(fake, 4);
}

// Until `copied` bytes have been, or ten seconds are over.
static bool comes_to(const tr_copy_engine *copy_engine, int64_t copied) {
    double begin = tr__seconds();
    while (tr__copy_engine_totals(copy_engine).copied < copied &&
           tr__seconds() - begin < 10) {
        tr__sleep(1e-3);
    }
    return tr__copy_engine_totals(copy_engine).copied >= copied;
}

// Two reads are under way at once, and a copy that has nothing to do with them is done
// beside them; nothing counts as done before what was ordered before it.
static void test_orders_overlap(void **state) {
    (void)state;
    fake_nvme *fake = fake_nvme_make(2 * CHUNK, 5);
    char *memory = page_memory(4 * CHUNK);
    atomic_store(&fake->hold, true);
    memset(fake->bytes, 7, 2 * CHUNK);
    memset(memory + 2 * CHUNK, 9, CHUNK);
    tr_copy_engine *copy_engine = on(fake, 2 * CHUNK);
    start(copy_engine, TR_CARRY_READ, NULL, memory, CHUNK, 0);
    start(copy_engine, TR_CARRY_READ, NULL, memory + CHUNK, CHUNK, CHUNK);
    int64_t copy = start(copy_engine, TR_CARRY_COPY, memory + 2 * CHUNK,
                         memory + 3 * CHUNK, CHUNK, 0);
    assert_true(comes_to(copy_engine, CHUNK));
    int64_t after =
        start(copy_engine, TR_CARRY_COPY, memory, memory + 2 * CHUNK, CHUNK, 0);
    tr__sleep(0.02); // time to do it too early
    assert_int_equal(tr__copy_engine_totals(copy_engine).copied, CHUNK);
    atomic_store(&fake->hold, false);
    assert_int_equal(tr__copy_engine_wait(copy_engine, copy, NULL), TR_OK);
    assert_int_equal(fake->most, 2);
    assert_true(memory[0] == 7 && memory[2 * CHUNK - 1] == 7);
    assert_int_equal(memory[3 * CHUNK], 9);
    assert_int_equal(tr__copy_engine_wait(copy_engine, after, NULL), TR_OK);
    assert_true(memory[2 * CHUNK] == 7 && memory[3 * CHUNK - 1] == 7);
    tr__copy_engine_destroy(copy_engine);
    free(memory);
}

// What a write still needs is not written over.
static void test_copy_waits_for_write(void **state) {
    (void)state;
    fake_nvme *fake = fake_nvme_make(CHUNK, 6);
    char *memory = page_memory(2 * CHUNK);
    memset(memory, 5, CHUNK);
    atomic_store(&fake->hold, true);
    tr_copy_engine *copy_engine = on(fake, CHUNK);
    start(copy_engine, TR_CARRY_WRITE, memory, NULL, CHUNK, 0);
    start(copy_engine, TR_CARRY_COPY, memory, memory + CHUNK, CHUNK,
          0); // only reads it
    assert_true(comes_to(copy_engine, CHUNK));
    int64_t over = start(copy_engine, TR_CARRY_COPY, memory + CHUNK, memory, CHUNK, 0);
    tr__sleep(0.02);
    assert_int_equal(tr__copy_engine_totals(copy_engine).copied, CHUNK);
    atomic_store(&fake->hold, false);
    assert_int_equal(tr__copy_engine_wait(copy_engine, over, NULL), TR_OK);
    assert_int_equal(fake->bytes[0], 5);
    assert_int_equal(fake->bytes[CHUNK - 1], 5);
    tr__copy_engine_destroy(copy_engine);
    free(memory);
}

// An error: waits return it, orders are dropped, and the memory is nobody's any more.
static void check_fault(fake_nvme *fake, tr_carry_kind kind, const char *words) {
    enum { CHUNKS = 12 };
    int left = -1;
    char *memory = page_memory(CHUNKS * CHUNK);
    fake->left_behind = &left;
    tr_copy_engine *copy_engine = on(fake, CHUNKS * CHUNK);
    int64_t first = start(copy_engine, kind, memory, memory, CHUNKS * CHUNK, 0);
    for (int i = 0; i < 3; i++) {
        tr_error err = {0};
        assert_int_equal(tr__copy_engine_wait(copy_engine, first, &err), TR_IO);
        assert_non_null(strstr(err.message, "/fake: cannot "));
        assert_non_null(strstr(err.message, words));
        int begun = fake->begun;
        assert_int_equal(fake->count, 0);
        for (int k = 0; k < 2 * TR_CARRY_QUEUE; k++) {
            first = start(copy_engine, kind, memory, memory, CHUNK, 0);
        }
        assert_int_equal(tr__copy_engine_wait(copy_engine, first, NULL), TR_IO);
        assert_int_equal(fake->begun, begun);
    }
    tr__copy_engine_destroy(copy_engine);
    assert_int_equal(left, 0);
    free(memory);
}

static void test_faults(void **state) {
    (void)state;
    static const struct {
        int fail_at, result, refuse_at;
        const char *words;
    } cases[] = {
        {1, -EIO, 0, "Input/output error"},
        {12, -EIO, 0, "Input/output error"},
        {5, 0, 0, "came short"},
        {7, 100, 0, "came short"},
        {3, -ENOSPC, 0, "No space left"},
        {0, 0, 4, "Input/output error"},
        {0, 0, 1, "Input/output error"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int write = 0; write < 2; write++) {
            fake_nvme *fake = fake_nvme_make(12 * CHUNK, 7 + i);
            fake->fail_at = cases[i].fail_at;
            fake->fail_result = cases[i].result;
            fake->refuse_at = cases[i].refuse_at;
            check_fault(fake, write ? TR_CARRY_WRITE : TR_CARRY_READ, cases[i].words);
        }
    }
}

// A kernel that says for ever that it was interrupted is an error too.
static void test_endless_interruption(void **state) {
    (void)state;
    fake_nvme *fake = fake_nvme_make(12 * CHUNK, 8);
    fake->interrupt_every = 1;
    check_fault(fake, TR_CARRY_READ, "Interrupted");
}

// Orders that are not begun are dropped with the copy engine; what is under way is not.
static void test_destroyed_with_orders(void **state) {
    (void)state;
    int left = -1;
    fake_nvme *fake = fake_nvme_make(8 * CHUNK, 9);
    char *memory = page_memory(8 * CHUNK);
    fake->left_behind = &left;
    tr_copy_engine *copy_engine = on(fake, 8 * CHUNK);
    for (int i = 0; i < TR_CARRY_QUEUE; i++) {
        start(copy_engine, i % 2 ? TR_CARRY_READ : TR_CARRY_WRITE, memory, memory,
              8 * CHUNK, 0);
    }
    tr__copy_engine_destroy(copy_engine);
    assert_int_equal(left, 0);
    free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_of_ends),
        cmocka_unit_test(test_transfers_in_parts),
        cmocka_unit_test(test_orders_overlap),
        cmocka_unit_test(test_copy_waits_for_write),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_endless_interruption),
        cmocka_unit_test(test_destroyed_with_orders),
    };
    return cmocka_run_group_tests_name("order of carrying", tests, NULL, NULL);
}
