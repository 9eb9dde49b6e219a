// Normalizations whose operands begin anywhere have the bits of those that begin at a
// multiple of 16 bytes; and a residual sum's normalization has those of layer_norm of
// the sum, which recomputes it.
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/nn/rms_norm/rms_norm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 9, OPERANDS = 9, IN_MOST = 5 };

// What an operand is, letter by letter: R [rows, width] and V [width] of the type that
// is tried, S [rows] and W [width] of f32.
typedef struct norm {
    const tr_op *op;
    const char *in, *out;
} norm;

static const norm norms[] = {
    {&tr__op_layer_norm, "RVV", "RSS"},
    {&tr__op_layer_norm_backward, "RRSSV", "RWW"},
    {&tr__op_residual_norm, "RRVV", "RRSS"},
    {&tr__op_rms_norm, "RV", "RS"},
    {&tr__op_rms_norm_backward, "RRSV", "RW"},
};

enum { NORMS = sizeof norms / sizeof *norms };

// A launch: its operands are those of `in`, then those of `out`.
typedef struct trial {
    tr_op_desc desc;
    int count;
    test_memory memory[OPERANDS];
    void *at[OPERANDS];
} trial;

static tr_tensor_desc describe(char kind, tr_dtype real, int64_t width) {
    tr_dtype dtype = kind == 'R' || kind == 'V' ? real : TR_F32;
    return (tr_tensor_desc){dtype, kind == 'R'   ? TR_SHAPE2(ROWS, width)
                                   : kind == 'S' ? TR_SHAPE1(ROWS)
                                                 : TR_SHAPE1(width)};
}

// Numbers in [1/4, 5/4): also where they are inverses of deviations.
static void fill(void *to, tr_tensor_desc desc, uint64_t seed) {
    int64_t count = tr_shape_count(desc.shape);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        float x = (float)(seed >> 40) / (float)(1 << 24) + 0.25f;
        if (desc.dtype == TR_F32) {
            ((float *)to)[i] = x;
        } else {
            ((uint16_t *)to)[i] = tr__bf16_of_f32(x);
        }
    }
}

// crooked: operands of the type that is tried begin one element behind such a place.
static void place(trial *t, int i, tr_tensor_desc desc, bool crooked) {
    size_t bytes = (size_t)tr_tensor_bytes(desc), element = tr_dtype_bytes(desc.dtype);
    t->memory[i] = test_memory_take(bytes + element);
    t->at[i] = (char *)t->memory[i].data + (crooked ? element : 0);
    fill(t->at[i], desc, (uint64_t)i + 1);
}

static trial begin(const norm *of, tr_dtype real, int64_t width, bool crooked) {
    trial t = {.desc = {.op = of->op,
                        .in_count = (int)strlen(of->in),
                        .out_count = (int)strlen(of->out),
                        .target = {.backend = TR_BACKEND_CUDA,
                                   .level = TR_CUDA_SM_90,
                                   .workers = 1}}};
    if (of->op == &tr__op_rms_norm || of->op == &tr__op_rms_norm_backward) {
        memcpy(t.desc.attr, &(tr_rms_norm_attr){.epsilon = 1e-5f},
               sizeof(tr_rms_norm_attr));
    } else {
        memcpy(t.desc.attr, &(tr_layer_norm_attr){1e-5f, {.probability = 0.25f}},
               sizeof(tr_layer_norm_attr));
    }
    for (int i = 0; i < t.desc.in_count; i++) {
        t.desc.in[i] = describe(of->in[i], real, width);
        place(&t, t.count++, t.desc.in[i], crooked && strchr("RV", of->in[i]));
    }
    for (int i = 0; i < t.desc.out_count; i++) {
        t.desc.out[i] = describe(of->out[i], real, width);
        place(&t, t.count++, t.desc.out[i], crooked && strchr("RV", of->out[i]));
    }
    return t;
}

static void run(trial *t, bool add) {
    tr_run_context context = {.rows = INT64_MAX, .seed = 7};
    uint32_t all = (1u << t->desc.out_count) - 1;
    t->desc.accumulate = add ? all : 0;
    t->desc.fresh = add ? 0 : all;
    tr_launch launch = {.run = &context, .accumulate = t->desc.accumulate};
    for (int i = 0; i < t->desc.in_count; i++) {
        launch.in[i] = t->at[i];
    }
    for (int i = 0; i < t->desc.out_count; i++) {
        launch.out[i] = t->at[t->desc.in_count + i];
    }
    test_launch(tr__cuda_kernel(&t->desc), &t->desc, &launch);
}

static void end(trial *t) {
    for (int i = 0; i < t->count; i++) {
        assert_true(test_memory_intact(&t->memory[i]));
        test_memory_give(&t->memory[i]);
    }
}

static void try_places(const norm *of, tr_dtype real, int64_t width, bool add) {
    trial straight = begin(of, real, width, false);
    trial crooked = begin(of, real, width, true);
    run(&straight, add);
    run(&crooked, add);
    for (int i = 0; i < straight.desc.out_count; i++) {
        int at = straight.desc.in_count + i;
        size_t bytes = (size_t)tr_tensor_bytes(straight.desc.out[i]);
        if (memcmp(crooked.at[at], straight.at[at], bytes) != 0) {
            fail_msg("%s, %s, rows of %d: output %d has other bits one element behind",
                     of->op->name, tr_dtype_name(real), (int)width, i);
        }
    }
    end(&straight);
    end(&crooked);
}

// Rows of a warp and of a block.
static void places_change_no_bit(void **state) {
    static const int64_t widths[] = {72, 776, 1032, 2056};
    (void)state;
    for (int i = 0; i < NORMS; i++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            try_places(&norms[i], TR_BF16, widths[w], w & 1);
            try_places(&norms[i], TR_F32, widths[w], !(w & 1));
        }
    }
}

static void sums_are_normalized_as_they_are_recomputed(void **state) {
    static const int64_t widths[] = {17, 72, 776, 1032};
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        trial both = begin(&norms[2], TR_BF16, widths[w], false);
        trial again = begin(&norms[0], TR_BF16, widths[w], false);
        run(&both, false);
        memcpy(again.at[0], both.at[4], (size_t)tr_tensor_bytes(both.desc.out[0]));
        memcpy(again.at[1], both.at[2], (size_t)tr_tensor_bytes(both.desc.in[2]));
        memcpy(again.at[2], both.at[3], (size_t)tr_tensor_bytes(both.desc.in[3]));
        run(&again, false);
        for (int i = 0; i < 3; i++) {
            assert_memory_equal(again.at[3 + i], both.at[5 + i],
                                (size_t)tr_tensor_bytes(again.desc.out[i]));
        }
        end(&both);
        end(&again);
    }
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_change_no_bit),
        cmocka_unit_test(sums_are_normalized_as_they_are_recomputed),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
