// States in 8 bits and in bf16: which values a code stands for, that the nearest is
// taken, and that every instruction set makes the same bits.
#include "backend/cpu/isa.h"
#include "ops/flat/packed_state/packed_state.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    COUNT = 5 * TR_STATE_BLOCK + 3,
    BYTES = 6 * TR_STATE_BLOCK_BYTES,
    ROOM = 2 * BYTES // of bf16, too
};

// Magnitudes over twelve powers of ten, which no map reaches to the end of.
static void draw(float *values, bool is_signed) {
    uint32_t seed = 7;
    for (int i = 0; i < COUNT; i++) {
        seed = seed * 1664525U + 1013904223U;
        float magnitude = powf(10, -12 * (float)(seed >> 8) / (float)(1 << 24));
        values[i] = is_signed && seed & 64 ? -magnitude : magnitude;
    }
}

static bool is_near(float value, double wanted) {
    return fabs(value / wanted - 1) < 1e-6;
}

// Known from the published construction: the ends, the least steps, the middle.
static void maps_are_the_published_ones(void **state) {
    tr_state_codes codes;
    (void)state;
    tr__state_codes(TR_STATE_I8, &codes);
    assert_true(is_near(codes.value[0], -0.99296875) && codes.value[255] == 1);
    assert_true(codes.value[127] == 0 && is_near(codes.value[128], 5.5e-7));
    assert_true(codes.value[126] == -codes.value[128]);
    assert_true(codes.value[254] == -codes.value[0]);
    tr__state_codes(TR_STATE_U8, &codes);
    assert_true(codes.value[0] == 0 && codes.value[255] == 1);
    assert_true(is_near(codes.value[1], 3.25e-7) && is_near(codes.value[2], 7.75e-7));
    for (int i = 1; i < TR_STATE_CODES; i++) {
        assert_true(codes.value[i] > codes.value[i - 1]);
    }
}

static int nearest(const tr_state_codes *codes, float value) {
    int best = 0;
    for (int i = 1; i < TR_STATE_CODES; i++) {
        best = value > codes->bound[i - 1] ? i : best;
    }
    return best;
}

static void check_nearest(tr_state_type type) {
    tr_state_codes codes;
    float values[COUNT], back[COUNT];
    unsigned char state[BYTES];
    draw(values, type == TR_STATE_I8);
    tr__state_codes(type, &codes);
    tr__state_pack(tr__state_kernel(-1), type, &codes, values, COUNT, false, state);
    tr__state_unpack(tr__state_kernel(-1), type, &codes, state, COUNT, back);
    for (int i = 0; i < COUNT; i++) {
        const unsigned char *block = state + i / TR_STATE_BLOCK * TR_STATE_BLOCK_BYTES;
        float scale;
        memcpy(&scale, block, sizeof scale);
        int code = block[sizeof scale + (size_t)(i % TR_STATE_BLOCK)];
        assert_int_equal(code, nearest(&codes, values[i] * (1 / scale)));
        assert_true(back[i] == codes.value[code] * scale);
        assert_true(fabsf(values[i]) <= scale);
    }
}

static void the_nearest_code_is_taken(void **state) {
    (void)state;
    check_nearest(TR_STATE_I8);
    check_nearest(TR_STATE_U8);
}

// By the scales that are there, values that codes stand for have these codes again.
static void kept_scales_keep_codes(void **state) {
    (void)state;
    for (int type = TR_STATE_I8; type <= TR_STATE_U8; type++) {
        tr_state_codes codes;
        float values[COUNT];
        unsigned char first[BYTES], again[BYTES];
        draw(values, type == TR_STATE_I8);
        tr__state_codes((tr_state_type)type, &codes);
        tr__state_pack(tr__state_kernel(-1), (tr_state_type)type, &codes, values, COUNT,
                       false, first);
        tr__state_unpack(tr__state_kernel(-1), (tr_state_type)type, &codes, first,
                         COUNT, values);
        memset(again, 0, sizeof again);
        for (int b = 0; b < BYTES; b += TR_STATE_BLOCK_BYTES) {
            memcpy(again + b, first + b, sizeof(float));
        }
        tr__state_pack(tr__state_kernel(-1), (tr_state_type)type, &codes, values, COUNT,
                       true, again);
        assert_memory_equal(again, first, sizeof first);
    }
}

static void instruction_sets_agree(void **state) {
    (void)state;
    for (int type = TR_STATE_BF16; type <= TR_STATE_U8; type++) {
        tr_state_codes codes;
        float values[COUNT], plain[COUNT], back[COUNT];
        unsigned char reference[ROOM] = {0}, other[ROOM] = {0};
        draw(values, type != TR_STATE_U8);
        tr__state_codes(type == TR_STATE_U8 ? TR_STATE_U8 : TR_STATE_I8, &codes);
        tr__state_pack(tr__state_kernel(-1), (tr_state_type)type, &codes, values, COUNT,
                       false, reference);
        tr__state_unpack(tr__state_kernel(-1), (tr_state_type)type, &codes, reference,
                         COUNT, plain);
        for (int level = 0; level <= (int)tr__cpu_isa(); level++) {
            tr__state_pack(tr__state_kernel(level), (tr_state_type)type, &codes, values,
                           COUNT, false, other);
            assert_memory_equal(other, reference, sizeof other);
            tr__state_unpack(tr__state_kernel(level), (tr_state_type)type, &codes,
                             other, COUNT, back);
            assert_memory_equal(back, plain, sizeof back);
        }
    }
}

// As a new run has it: zeros mean zeros.
static void zeros_stay_zeros(void **state) {
    tr_state_codes codes;
    float values[TR_STATE_BLOCK];
    unsigned char block[TR_STATE_BLOCK_BYTES] = {0};
    (void)state;
    tr__state_codes(TR_STATE_I8, &codes);
    for (int turn = 0; turn < 2; turn++) {
        tr__state_unpack(tr__state_kernel(-1), TR_STATE_I8, &codes, block,
                         TR_STATE_BLOCK, values);
        for (int i = 0; i < TR_STATE_BLOCK; i++) {
            assert_true(values[i] == 0);
        }
        tr__state_pack(tr__state_kernel(-1), TR_STATE_I8, &codes, values,
                       TR_STATE_BLOCK, false, block);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_the_published_ones),
        cmocka_unit_test(the_nearest_code_is_taken),
        cmocka_unit_test(kept_scales_keep_codes),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(zeros_stay_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
