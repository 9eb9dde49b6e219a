// The formats of 8 bits: every code, what numbers between them are rounded to, and the
// scale of a tensor. What PyTorch makes of the same is in tests/data/fp8.txt.
#include "base/fp8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

// By hand, from the definition: fraction * 2^(exponent - bias).
static double by_definition(tr_fp8 format, int code) {
    int bits = format == TR_FP8_E4M3 ? 3 : 2, bias = format == TR_FP8_E4M3 ? 7 : 15;
    int exponent = (code & 0x7F) >> bits, fraction = code & ((1 << bits) - 1);
    double size = exponent > 0
                      ? ldexp(1 + fraction / (double)(1 << bits), exponent - bias)
                      : ldexp(fraction / (double)(1 << bits), 1 - bias);
    if (format == TR_FP8_E4M3 && (code & 0x7F) == 0x7F) {
        size = NAN;
    } else if (format == TR_FP8_E5M2 && exponent == 31) {
        size = fraction > 0 ? NAN : INFINITY;
    }
    return code & 0x80 ? -size : size;
}

static bool is_finite_code(tr_fp8 format, int code) {
    return isfinite(by_definition(format, code));
}

static void every_code_is_its_number(void **state) {
    (void)state;
    for (int format = 0; format < 2; format++) {
        for (int code = 0; code < 256; code++) {
            tr_fp8 f = (tr_fp8)format;
            float value = tr__fp8_to_f32(f, (uint8_t)code);
            double want = by_definition(f, code);
            if (isnan(want)) {
                assert_true(isnan(value));
            } else {
                assert_true(value == want);
                assert_int_equal(signbit(value) != 0, code >> 7);
            }
            if (isfinite(want)) {
                assert_int_equal(tr__fp8_of_f32(f, value), code);
            }
        }
    }
}

// Some numbers of the paper's table 1, and its neighbours.
static void known_numbers(void **state) {
    (void)state;
    assert_true(tr__fp8_to_f32(TR_FP8_E4M3, 0x7E) == 448);
    assert_true(tr__fp8_to_f32(TR_FP8_E4M3, 0x08) == 0x1p-6f);
    assert_true(tr__fp8_to_f32(TR_FP8_E4M3, 0x07) == 0.875f * 0x1p-6f);
    assert_true(tr__fp8_to_f32(TR_FP8_E4M3, 0x01) == 0x1p-9f);
    assert_true(tr__fp8_to_f32(TR_FP8_E4M3, 0x38) == 1);
    assert_true(tr__fp8_to_f32(TR_FP8_E5M2, 0x7B) == 57344);
    assert_true(tr__fp8_to_f32(TR_FP8_E5M2, 0x04) == 0x1p-14f);
    assert_true(tr__fp8_to_f32(TR_FP8_E5M2, 0x03) == 0.75f * 0x1p-14f);
    assert_true(tr__fp8_to_f32(TR_FP8_E5M2, 0x01) == 0x1p-16f);
    assert_true(tr__fp8_to_f32(TR_FP8_E5M2, 0x3C) == 1);
}

// Between each two neighbours: to the nearer, and from the middle to the even one.
static void between_codes(void **state) {
    (void)state;
    for (int format = 0; format < 2; format++) {
        for (int code = 0; is_finite_code((tr_fp8)format, code + 1); code++) {
            tr_fp8 f = (tr_fp8)format;
            float low = tr__fp8_to_f32(f, (uint8_t)code);
            float high = tr__fp8_to_f32(f, (uint8_t)(code + 1));
            float middle = (low + high) / 2; // exact
            int even = code % 2 == 0 ? code : code + 1;
            assert_int_equal(tr__fp8_of_f32(f, middle), even);
            assert_int_equal(tr__fp8_of_f32(f, nextafterf(middle, low)), code);
            assert_int_equal(tr__fp8_of_f32(f, nextafterf(middle, high)), code + 1);
            assert_int_equal(tr__fp8_of_f32(f, -middle), even | 0x80);
        }
    }
}

static void beyond_the_largest(void **state) {
    (void)state;
    for (int format = 0; format < 2; format++) {
        tr_fp8 f = (tr_fp8)format;
        int largest = f == TR_FP8_E4M3 ? 0x7E : 0x7B;
        assert_int_equal(tr__fp8_of_f32(f, 1.01f * tr__fp8_largest(f)), largest);
        assert_int_equal(tr__fp8_of_f32(f, 3e38f), largest);
        assert_int_equal(tr__fp8_of_f32(f, INFINITY), largest);
        assert_int_equal(tr__fp8_of_f32(f, -INFINITY), largest | 0x80);
        assert_true(isnan(tr__fp8_to_f32(f, tr__fp8_of_f32(f, NAN))));
        assert_int_equal(tr__fp8_of_f32(f, 1e-40f), 0);
        assert_int_equal(tr__fp8_of_f32(f, -0.0f), 0x80);
    }
}

// The largest power of two that does not saturate.
static void scales(void **state) {
    static const float values[] = {1,        0.0371f, 1.75f, 1.7500001f,   448,
                                   449,      57344,   57345, 0x1.8p-40f,   3e20f,
                                   0x1p127f, 1e-12f,  2,     0x1.bffffep8f};
    (void)state;
    for (int format = 0; format < 2; format++) {
        tr_fp8 f = (tr_fp8)format;
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            tr_fp8_scale scale = tr__fp8_scale_of(f, tr__f32_bits(values[i]));
            int exponent;
            assert_true(frexpf(scale.by, &exponent) == 0.5f);
            assert_true(scale.by * scale.back == 1);
            assert_true((double)values[i] * scale.by <= tr__fp8_largest(f));
            assert_true(2 * (double)values[i] * scale.by > tr__fp8_largest(f));
        }
    }
}

static void scales_at_the_ends(void **state) {
    (void)state;
    for (int format = 0; format < 2; format++) {
        tr_fp8 f = (tr_fp8)format;
        assert_true(tr__fp8_scale_of(f, 0).by == 0x1p63f);
        assert_true(tr__fp8_scale_of(f, 1).by == 0x1p63f); // subnormal
        assert_true(tr__fp8_scale_of(f, tr__f32_bits(0x1p-60f)).by == 0x1p63f);
        assert_true(isnan(tr__fp8_scale_of(f, tr__f32_bits(INFINITY)).by));
        assert_true(isnan(tr__fp8_scale_of(f, tr__f32_bits(INFINITY)).back));
        assert_true(isnan(tr__fp8_scale_of(f, tr__f32_bits(NAN)).back));
    }
}

// Lines "e4m3 BITS CODE": f32 by its bits, as PyTorch's cast rounds it.
static void as_pytorch(void **state) {
    FILE *file = fopen(TR_TEST_DATA "/fp8.txt", "r");
    char line[128], name[8];
    unsigned bits, code;
    int count = 0;
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') {
            continue;
        }
        assert_int_equal(sscanf(line, "%7s %x %x", name, &bits, &code), 3);
        tr_fp8 f = name[1] == '4' ? TR_FP8_E4M3 : TR_FP8_E5M2;
        assert_int_equal(tr__fp8_of_f32(f, tr__f32_of_bits(bits)), code);
        count++;
    }
    assert_true(count > 1000);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_is_its_number),
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(between_codes),
        cmocka_unit_test(beyond_the_largest),
        cmocka_unit_test(scales),
        cmocka_unit_test(scales_at_the_ends),
        cmocka_unit_test(as_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
