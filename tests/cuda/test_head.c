// The products of the head, whatever the number of logits is: rows of what they read
// and write begin at multiples of 16 bytes; and where the plan has zeros behind the
// weight, so do their extents, and nothing else is changed by it.
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "cuda/device.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { X, WEIGHT, NO_BIAS, TARGETS, INPUTS };
enum { DX, DWEIGHT, NO_DBIAS, SUMS, RESULTS };
enum { LINE = 64, CHUNKED = 4, ALL = 0 }; // CHUNKED: rows of a chunk

typedef struct sizes {
    int64_t rows, width, logits;
    float scale; // of x and the weight
} sizes;

static const sizes small = {8, 32, 85, 0.25f};

// A launch of the head's backward, and its operands.
typedef struct trial {
    sizes of;
    tr_op_desc desc;
    test_memory in[INPUTS], out[RESULTS];
} trial;

static int64_t behind(const sizes *of) { // the weight, elements
    return (LINE - of->logits % LINE) * of->width;
}

static tr_op_desc describe(const sizes *of, bool padded, bool f32_logits,
                           int32_t chunk) {
    const tr_lce_attr attr = {TR_WEIGHT_OUT_IN, chunk, 0};
    const tr_shape x = TR_SHAPE2(of->rows, of->width);
    const tr_shape weight = TR_SHAPE2(of->logits, of->width);
    tr_op_desc desc = {
        .op = &tr__op_linear_cross_entropy_backward,
        .in_count = INPUTS,
        .out_count = RESULTS,
        .in = {[X] = {TR_BF16, x},
               [WEIGHT] = {TR_BF16, weight},
               [TARGETS] = {TR_I32, TR_SHAPE1(of->rows)}},
        .out = {[DX] = {TR_BF16, x},
                [DWEIGHT] = {TR_F32, weight},
                [SUMS] = {TR_F64, TR_SHAPE1(TR_SUMS)}},
        .fresh = 1 << DX | 1 << DWEIGHT,
        .accumulate = 1 << SUMS,
        .in_padded = padded ? 1 << WEIGHT : 0,
        .out_padded = padded ? 1 << DWEIGHT : 0,
        .f32_logits = f32_logits,
        .target = {.backend = TR_BACKEND_CUDA, .level = TR_CUDA_SM_90, .workers = 1},
    };
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static test_memory take(tr_tensor_desc desc, int64_t more) {
    int64_t bytes =
        desc.dtype == TR_NONE
            ? 0
            : tr_tensor_bytes(desc) + more * (int64_t)tr_dtype_bytes(desc.dtype);
    test_memory memory = test_memory_take((size_t)bytes);
    if (bytes > 0) {
        memset(memory.data, 0, memory.bytes);
    }
    return memory;
}

// Numbers in [-1, 1) times a scale.
static void fill(test_memory *memory, int64_t count, float scale, uint64_t seed) {
    uint16_t *x = memory->data;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        float drawn = (float)(seed >> 40) / (float)(1 << 23) - 1;
        x[i] = tr__bf16_of_f32(scale * drawn);
    }
}

static trial begin_sized(const sizes *of, bool padded, bool f32_logits, int32_t chunk) {
    trial t = {.of = *of, .desc = describe(of, padded, f32_logits, chunk)};
    for (int i = 0; i < INPUTS; i++) {
        t.in[i] = take(t.desc.in[i], padded && i == WEIGHT ? behind(of) : 0);
    }
    for (int i = 0; i < RESULTS; i++) {
        t.out[i] = take(t.desc.out[i], padded && i == DWEIGHT ? behind(of) : 0);
    }
    fill(&t.in[X], of->rows * of->width, of->scale, 1);
    fill(&t.in[WEIGHT], of->logits * of->width, of->scale, 2);
    for (int64_t r = 0; r < of->rows; r++) {
        ((int32_t *)t.in[TARGETS].data)[r] =
            r == 1 ? -100 : (int32_t)(r * 7919 % of->logits);
    }
    return t;
}

static trial begin(bool padded, bool f32_logits, int32_t chunk) {
    return begin_sized(&small, padded, f32_logits, chunk);
}

static void run(trial *t) {
    tr_run_context context = {.loss_seed = 0.5f, .rows = INT64_MAX};
    tr_launch launch = {.run = &context, .accumulate = t->desc.accumulate};
    for (int i = 0; i < INPUTS; i++) {
        launch.in[i] = t->in[i].data;
    }
    for (int i = 0; i < RESULTS; i++) {
        launch.out[i] = t->out[i].data;
    }
    test_launch(tr__cuda_kernel(&t->desc), &t->desc, &launch);
}

static void end(trial *t) {
    for (int i = 0; i < INPUTS; i++) {
        assert_true(test_memory_intact(&t->in[i]));
        test_memory_give(&t->in[i]);
    }
    for (int i = 0; i < RESULTS; i++) {
        assert_true(test_memory_intact(&t->out[i]));
        test_memory_give(&t->out[i]);
    }
}

static void rows_begin_at_16_bytes(void **state) {
    (void)state;
    for (int f32 = 0; f32 < 2; f32++) {
        trial t = begin(false, f32, CHUNKED);
        int before = test_device_crooked();
        run(&t);
        assert_true(((const double *)t.out[SUMS].data)[1] == (double)small.rows - 1);
        assert_int_equal(test_device_crooked(), before);
        end(&t);
    }
}

static void extents_are_whole_with_zeros(void **state) {
    (void)state;
    trial without = begin(false, false, ALL), with = begin(true, false, ALL);
    assert_int_equal(tr__cuda_kernel(&with.desc)->padding(&with.desc, WEIGHT),
                     behind(&small));
    assert_int_equal(tr__cuda_kernel(&with.desc)->padding(&with.desc, X), 0);
    int before = test_device_odd();
    run(&without);
    assert_int_equal(test_device_odd() - before, 3); // it counts
    before = test_device_odd();
    run(&with);
    assert_int_equal(test_device_odd(), before);
    end(&without);
    end(&with);
}

static bool are_zeros(const float *x, int64_t count) {
    bool zeros = true;
    for (int64_t i = 0; i < count; i++) {
        zeros = zeros && x[i] == 0 && !signbit(x[i]);
    }
    return zeros;
}

static const float *behind_dweight(const trial *t) {
    return (const float *)t->out[DWEIGHT].data + t->of.logits * t->of.width;
}

// The same bits, in chunks, too; and behind the gradient, zeros.
static void zeros_change_no_bit(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        bool f32 = way & 1;
        int32_t chunk = way & 2 ? 3 : ALL;
        trial without = begin(false, f32, chunk), with = begin(true, f32, chunk);
        run(&without);
        run(&with);
        for (int i = 0; i < RESULTS; i++) {
            if (without.out[i].bytes > 0) {
                assert_memory_equal(with.out[i].data, without.out[i].data,
                                    without.out[i].bytes);
            }
        }
        assert_true(are_zeros(behind_dweight(&with), behind(&small)));
        end(&without);
        end(&with);
    }
}

// What is not finite in x reaches all gradients, and nothing behind them.
static void zeros_stay_whatever_x_is(void **state) {
    (void)state;
    static const float values[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        trial t = begin(true, false, ALL);
        ((uint16_t *)t.in[X].data)[5] = tr__bf16_of_f32(values[i]);
        run(&t);
        assert_false(isfinite(((const float *)t.out[DWEIGHT].data)[5]));
        assert_true(are_zeros(behind_dweight(&t), behind(&small)));
        end(&t);
    }
}

// Rows that a block keeps in shared memory, and those that it reads again: another GPU
// has other room for them.
static void rows_have_the_same_bits_kept_or_not(void **state) {
    (void)state;
    static const sizes of = {3, 16, 25000, 0.5f};
    for (int f32 = 0; f32 < 2; f32++) {
        trial kept = begin_sized(&of, true, f32, ALL);
        trial again = begin_sized(&of, true, f32, ALL);
        again.desc.target.level = TR_CUDA_SM_80;
        run(&kept);
        run(&again);
        for (int i = 0; i < RESULTS; i++) {
            if (kept.out[i].bytes > 0) {
                assert_memory_equal(kept.out[i].data, again.out[i].data,
                                    kept.out[i].bytes);
            }
        }
        end(&kept);
        end(&again);
    }
}

// How far a gradient is off, of its norm.
static double distance(const float *is, const float *ought, int64_t count) {
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += pow((double)is[i] - ought[i], 2);
        size += pow(ought[i], 2);
    }
    return sqrt(apart / size);
}

static double distance_16(const uint16_t *is, const uint16_t *ought, int64_t count) {
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += pow((double)tr__bf16_to_f32(is[i]) - tr__bf16_to_f32(ought[i]), 2);
        size += pow(tr__bf16_to_f32(ought[i]), 2);
    }
    return sqrt(apart / size);
}

// The table of docs/precision.md, "Logits on a GPU": GPT-2's vocabulary, and logits
// that are larger from row to row of it.
static void half_logits_are_beside_those_of_f32(void **state) {
    static const float scales[] = {0.5f, 0.9f, 1.6f};
    (void)state;
    print_message("| logits' deviation | loss in f32 | in bf16 | dx off | dW off |\n");
    for (int i = 0; i < 3; i++) {
        const sizes of = {24, 64, 50257, scales[i]};
        trial half = begin_sized(&of, true, false, ALL);
        trial full = begin_sized(&of, true, true, ALL);
        run(&half);
        run(&full);
        const double *a = half.out[SUMS].data, *b = full.out[SUMS].data;
        double dw = distance(half.out[DWEIGHT].data, full.out[DWEIGHT].data,
                             of.logits * of.width);
        double dx =
            distance_16(half.out[DX].data, full.out[DX].data, of.rows * of.width);
        double deviation = scales[i] * scales[i] / 3 * sqrt((double)of.width);
        print_message("| %.2g | %.6f | %.6f | %.2g | %.2g |\n", deviation, b[0] / b[1],
                      a[0] / a[1], dx, dw);
        assert_true(a[0] != b[0] && a[1] == b[1]);
        assert_true(fabs(a[0] / b[0] - 1) < 1e-3);
        assert_true(dx < 2e-2 && dw < 2e-2);
        end(&half);
        end(&full);
    }
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_begin_at_16_bytes),
        cmocka_unit_test(extents_are_whole_with_zeros),
        cmocka_unit_test(zeros_change_no_bit),
        cmocka_unit_test(zeros_stay_whatever_x_is),
        cmocka_unit_test(rows_have_the_same_bits_kept_or_not),
        cmocka_unit_test(half_logits_are_beside_those_of_f32),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
