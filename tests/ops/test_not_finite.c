// What NaN and infinities become, as torch 2 has it: relu, gelu, silu and max_pool2d
// were asked. The reference and every kernel of the processor.
#include "ops/launch.h"
#include "ops/nn/gelu/gelu.h"
#include "ops/nn/pool/pool.h"
#include "ops/nn/relu/relu.h"
#include "ops/nn/swiglu/swiglu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 10 };

#define VALUES NAN, INFINITY, -INFINITY, 1, -1
static const float ones[COUNT] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

typedef struct fact {
    const tr_op *op;
    int attr; // the first of the attributes' integers
    tr_tensor_desc in[2], out;
    const float *x[2];
    // Of each result: '0' and '1' that number, 'f' finite, '+' infinity, 'n' NaN, '!'
    // not finite: an infinity times 0, which is NaN, or times a number that is almost
    // 0.
    const char *want;
} fact;

static const float values[COUNT] = {VALUES, VALUES};
static const float gated[COUNT] = {VALUES, 1, 1, 1, 1, 1}; // gates, then factors
static const float image[9] = {1, NAN, 2, 3, 4, -INFINITY, 0, 1, INFINITY};

// clang-format off
#define VECTOR(n)       {TR_F32, {1, {n}}}
#define MATRIX(rows, n) {TR_F32, {2, {rows, n}}}
// clang-format on

static const fact facts[] = {
    {&tr__op_relu, 0, {VECTOR(5)}, VECTOR(5), {values}, "n+010"},
    {&tr__op_relu_backward,
     0,
     {VECTOR(5), VECTOR(5)},
     VECTOR(5),
     {ones, values},
     "11010"},
    {&tr__op_gelu, TR_GELU_TANH, {VECTOR(5)}, VECTOR(5), {values}, "n+!ff"},
    {&tr__op_gelu, TR_GELU_ERF, {VECTOR(5)}, VECTOR(5), {values}, "n!!ff"},
    {&tr__op_gelu_backward,
     TR_GELU_ERF,
     {VECTOR(5), VECTOR(5)},
     VECTOR(5),
     {ones, values},
     "nnnff"},
    {&tr__op_swiglu, 0, {MATRIX(1, 10)}, MATRIX(1, 5), {gated}, "n+!ff"},
    {&tr__op_pool,
     TR_POOL_MAX,
     {{TR_F32, {4, {1, 3, 3, 1}}}},
     {TR_F32, {4, {1, 2, 2, 1}}},
     {image},
     "nnf+"},
};

static bool is(float y, char want) {
    switch (want) {
    case '0':
    case '1':
        return y == (float)(want - '0');
    case 'f':
        return isfinite(y);
    case '+':
        return y == INFINITY;
    case 'n':
        return isnan(y);
    default:
        return !isfinite(y);
    }
}

static void check(const fact *f) {
    float y[COUNT];
    tr_op_desc desc = {.op = f->op,
                       .in_count = f->x[1] ? 2 : 1,
                       .out_count = 1,
                       .in = {f->in[0], f->in[1]},
                       .out = {f->out},
                       .fresh = 1,
                       .target = {.workers = 1}};
    tr_launch launch = {.in = {f->x[0], f->x[1]}, .out = {y}};
    tr_pool_attr window = {TR_POOL_MAX, 2, 1, 0};
    const tr_kernel *kernel;
    memcpy(desc.attr, &f->attr, sizeof f->attr);
    if (f->op == &tr__op_pool) {
        memcpy(desc.attr, &window, sizeof window);
    }
    for (int k = 0; (kernel = test_kernel(f->op, k)) != NULL; k++) {
        test_launch(kernel, &desc, &launch);
        for (size_t i = 0; i < strlen(f->want); i++) {
            if (!is(y[i], f->want[i])) {
                fail_msg("%s: result %zu is %g, not %c", kernel->name, i, y[i],
                         f->want[i]);
            }
        }
    }
}

static void test_as_torch(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        check(&facts[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_torch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
