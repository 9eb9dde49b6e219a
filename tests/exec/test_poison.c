// Under AddressSanitizer nobody may touch the bytes of an arena that no buffer has.
#include "base/poison.h"
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef TR_POISONS

static char *base_of(const test_rig *rig) {
    return tr__arena_view(rig->arenas[TR_SPACE_DEVICE], 0, 0);
}

// Has a buffer the byte?
static bool is_owned(const tr_plan *plan, int64_t at) {
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *b = &plan->buffers[i];
        if (b->space == TR_SPACE_DEVICE && at >= b->offset &&
            at < b->offset + b->bytes) {
            return true;
        }
    }
    return false;
}

static void test_each_byte(void **state) {
    tr_model *model = test_rig_gpt2(2, 0);
    tr_plan_request request = test_rig_request(model, 3);
    test_rig rig;
    int64_t closed = 0;
    (void)state;
    test_rig_begin(&rig, &request);
    char *base = base_of(&rig);
    int64_t bytes = rig.plan->arena_bytes[TR_SPACE_DEVICE];
    for (int64_t i = 0; i < bytes; i++) {
        bool is = __asan_address_is_poisoned(base + i);
        if (is == is_owned(rig.plan, i)) {
            fail_msg("byte %lld of %lld", (long long)i, (long long)bytes);
        }
        closed += is;
    }
    assert_true(closed > 0);
    assert_true(__asan_address_is_poisoned(base + bytes));
    test_rig_train(&rig); // which touches none of them
    test_rig_end(&rig);
    assert_null(__asan_region_is_poisoned(base, (size_t)bytes));
    tr_model_destroy(model);
}

// Two plans in one arena, as a sampler has them.
static void test_two_plans(void **state) {
    tr_model *model = test_rig_gpt2(2, 0);
    tr_plan_request small = test_rig_request(model, 1),
                    large = test_rig_request(model, 6);
    tr_error err = {0};
    tr_plan *other = NULL;
    test_rig rig;
    (void)state;
    assert_int_equal(tr_plan_make(&large, &other, &err), TR_OK);
    test_rig_begin(&rig, &small);
    assert_int_equal(tr__arenas_fit(other, rig.arenas, &err), TR_OK);
    char *base = base_of(&rig);
    int64_t bytes = other->arena_bytes[TR_SPACE_DEVICE];
    assert_true(bytes > rig.plan->arena_bytes[TR_SPACE_DEVICE]);
    for (int64_t i = 0; i < bytes; i++) {
        bool owned = is_owned(rig.plan, i) || is_owned(other, i);
        assert_false(owned && __asan_address_is_poisoned(base + i));
    }
    assert_true(__asan_address_is_poisoned(base + bytes));
    tr_plan_destroy(other);
    test_rig_end(&rig);
    tr_model_destroy(model);
}

#else

static void test_each_byte(void **state) {
    (void)state;
    skip();
}

static void test_two_plans(void **state) {
    (void)state;
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_byte),
        cmocka_unit_test(test_two_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
