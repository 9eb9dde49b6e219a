// Every bit pattern of the 16-bit types against their definition.
#include "files/support.h"

#include "files/safetensors/convert.h"

#include <float.h>
#include <math.h>
#include <string.h>

// From the parts of a binary floating-point number with `fraction_bits` and `bias`.
static double by_definition(uint16_t bits, int fraction_bits, int bias) {
    int exponent_max = (1 << (15 - fraction_bits)) - 1;
    int exponent = (bits >> fraction_bits) & exponent_max;
    int fraction = bits & ((1 << fraction_bits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == exponent_max) {
        return fraction ? NAN : sign * INFINITY;
    }
    double whole = exponent ? ldexp(1, fraction_bits) : 0;
    int shift = (exponent ? exponent : 1) - bias - fraction_bits;
    return sign * ldexp(whole + fraction, shift);
}

static void check_all(tr_dtype dtype, int fraction_bits, int bias) {
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        uint16_t stored = (uint16_t)bits;
        float single;
        double wide, expected = by_definition(stored, fraction_bits, bias);
        assert_int_equal(tr__convert_f32(dtype, &stored, 1, &single), -1);
        tr__convert_f64(dtype, &stored, 1, &wide);
        if (isnan(expected)) {
            assert_true(isnan(single) && isnan(wide));
        } else {
            assert_true((double)single == expected && wide == expected);
            assert_int_equal(!signbit(single), !signbit(expected));
        }
    }
}

static void half_types(void **state) {
    (void)state;
    check_all(TR_F16, 10, 15);
    check_all(TR_BF16, 7, 127);
}

static void doubles(void **state) {
    (void)state;
    double in[] = {0.1, -0.0, INFINITY, FLT_MAX, 1e39, 1e300};
    float out[6];
    assert_int_equal(tr__convert_f32(TR_F64, in, 4, out), -1);
    assert_true(out[0] == 0.1f && signbit(out[1]) && isinf(out[2]) &&
                out[3] == FLT_MAX);
    assert_int_equal(tr__convert_f32(TR_F64, in, 6, out), 4);
}

static void integers(void **state) {
    (void)state;
    static const unsigned char bytes[8] = {0xfe, 0xff, 0xff, 0xff,
                                           0xff, 0xff, 0xff, 0x7f};
    static const struct {
        tr_dtype dtype;
        double expected;
    } cases[] = {{TR_I8, -2},          {TR_U8, 254},     {TR_BOOL, 254},
                 {TR_I16, -2},         {TR_U16, 65534},  {TR_I32, -2},
                 {TR_U32, 4294967294}, {TR_I64, 0x1p63}, {TR_U64, 0x1p63}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value;
        tr__convert_f64(cases[i].dtype, bytes, 1, &value);
        assert_true(value == cases[i].expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_types),
        cmocka_unit_test(doubles),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
