// Kernels that only inferences use, of every instruction set and format, against the
// same sums in double: products of few rows, and attention over a cache in pieces.
#include "backend/cpu/half.h"
#include "backend/cpu/kernels.h"
#include "ops/launch.h"
#include "ops/nn/attention/attention.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
enum { TYPES = sizeof types / sizeof *types };

// Numbers in a format, and the same in f32.
typedef struct numbers {
    tr_dtype type;
    int64_t count;
    void *data;
    float *f32;
} numbers;

static void take_back(numbers *n) { // what data say
    if (n->type == TR_F32) {
        memcpy(n->f32, n->data, (size_t)n->count * sizeof(float));
    } else {
        tr__half_widen(n->type, n->data, n->count, 1, n->f32);
    }
}

// Uniform in [-scale, scale], rounded to the format.
static numbers make(tr_dtype type, int64_t count, float scale, uint64_t seed) {
    numbers n = {type, count, malloc((size_t)count * tr_dtype_bytes(type)),
                 malloc((size_t)count * sizeof(float))};
    assert_true(n.data && n.f32);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        n.f32[i] = scale * ((float)(seed >> 40) / (float)(1 << 23) - 1);
    }
    if (type == TR_F32) {
        memcpy(n.data, n.f32, (size_t)count * sizeof(float));
    } else {
        tr__half_narrow(type, n.f32, count, 1, n.data);
    }
    take_back(&n);
    return n;
}

static void give(numbers *n) {
    free(n->data);
    free(n->f32);
}

// Of a number that is rounded once to the format.
static double bound(tr_dtype type) {
    return type == TR_F32 ? 3e-6 : type == TR_BF16 ? 1.0 / 256 : 1.0 / 2048;
}

static void expect(const numbers *got, int64_t i, double want, double size) {
    if (!(fabs(got->f32[i] - want) <= bound(got->type) * (fabs(want) + size))) {
        fail_msg("element %lld of type %d: %g, not %g", (long long)i, (int)got->type,
                 (double)got->f32[i], want);
    }
}

static void launch(const tr_op_desc *desc, const tr_launch *what) {
    test_launch(tr__cpu_kernel(desc), desc, what);
}

// ---- few rows

typedef struct product {
    int64_t rows, in, out;
    tr_linear_attr attr;
    bool bias;
} product;

static double want_of(const product *p, const numbers *x, const numbers *w,
                      const numbers *b, int64_t r, int64_t o, double *size) {
    double sum = p->bias ? b->f32[o] : 0;
    *size = fabs(sum);
    for (int64_t i = 0; i < p->in; i++) {
        int64_t at =
            p->attr.layout == TR_WEIGHT_IN_OUT ? i * p->out + o : o * p->in + i;
        sum += (double)x->f32[r * p->in + i] * w->f32[at];
        *size += fabs((double)x->f32[r * p->in + i] * w->f32[at]);
    }
    return p->attr.activation == TR_ACTIVATION_RELU && sum < 0 ? 0 : sum;
}

static tr_op_desc describe(const product *p, tr_dtype type, int level, int workers) {
    bool in_first = p->attr.layout == TR_WEIGHT_IN_OUT;
    tr_op_desc desc = {
        .op = &tr__op_linear,
        .in_count = 3,
        .out_count = 1,
        .in = {{type, TR_SHAPE2(p->rows, p->in)},
               {type, in_first ? TR_SHAPE2(p->in, p->out) : TR_SHAPE2(p->out, p->in)},
               {p->bias ? type : TR_NONE, TR_SHAPE1(p->out)}},
        .out = {{type, TR_SHAPE2(p->rows, p->out)}},
        .fresh = 1,
        .inference = true,
        .target = {.level = level, .workers = workers},
    };
    memcpy(desc.attr, &p->attr, sizeof p->attr);
    return desc;
}

static void check_product(const product *p, tr_dtype type, int level) {
    numbers x = make(type, p->rows * p->in, 1, 1), w = make(type, p->in * p->out, 1, 2);
    numbers b = make(type, p->out, 1, 3), y = make(type, p->rows * p->out, 9, 4);
    numbers again = make(type, p->rows * p->out, 9, 5);
    tr_launch what = {.in = {x.data, w.data, p->bias ? b.data : NULL}};
    tr_op_desc desc = describe(p, type, level, 1);
    assert_non_null(strstr(tr__cpu_kernel(&desc)->name, "few"));
    what.out[0] = y.data;
    launch(&desc, &what);
    take_back(&y);
    for (int64_t i = 0; i < p->rows * p->out; i++) {
        double size, want = want_of(p, &x, &w, &b, i / p->out, i % p->out, &size);
        expect(&y, i, want, type == TR_F32 ? size : size / 1000);
    }
    desc.target.workers = 3; // changes no bit
    what.out[0] = again.data;
    launch(&desc, &what);
    take_back(&again);
    assert_memory_equal(y.f32, again.f32, (size_t)y.count * sizeof(float));
    numbers *all[] = {&x, &w, &b, &y, &again};
    for (int i = 0; i < 5; i++) {
        give(all[i]);
    }
}

static void test_few_rows(void **state) {
    static const product products[] = {
        {1, 1, 1, {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE}, false},
        {1, 67, 130, {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE}, true},
        {4, 129, 65, {TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU}, true},
        {1, 5, 3, {TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE}, true},
        {1, 66, 131, {TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE}, false},
        {3, 64, 128, {TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU}, true},
        {1, 576, 300, {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE}, false}, // more threads
        {2, 300, 576, {TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE}, true},
    };
    (void)state;
    for (int level = 0; level <= (int)tr__cpu_isa(); level++) {
        for (int t = 0; t < TYPES; t++) {
            for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
                check_product(&products[i], types[t], level);
            }
        }
    }
}

// Of each sample the logits of its last target; zeros where it has none.
static void check_logits(tr_dtype type, int level) {
    enum { SAMPLES = 3, EACH = 2, IN = 35, OUT = 70 };
    static const int32_t targets[SAMPLES * EACH] = {1, -100, -100, -100, 3, 0};
    static const int rows[SAMPLES] = {0, -1, 5};
    numbers x = make(type, SAMPLES * EACH * IN, 1, 1), w = make(type, OUT * IN, 1, 2);
    numbers y = make(TR_F32, SAMPLES * OUT, 9, 4);
    const product p = {1, IN, OUT, {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE}, false};
    tr_op_desc desc = {.op = &tr__op_linear_cross_entropy_logits,
                       .in_count = 4,
                       .out_count = 1,
                       .in = {{type, TR_SHAPE3(SAMPLES, EACH, IN)},
                              {type, TR_SHAPE2(OUT, IN)},
                              {TR_NONE, {0}},
                              {TR_I32, TR_SHAPE2(SAMPLES, EACH)}},
                       .out = {{TR_F32, TR_SHAPE2(SAMPLES, OUT)}},
                       .fresh = 1,
                       .inference = true,
                       .target = {.level = level, .workers = 2}};
    tr_launch what = {.in = {x.data, w.data, NULL, targets}, .out = {y.data}};
    launch(&desc, &what);
    take_back(&y);
    for (int64_t i = 0; i < SAMPLES * OUT; i++) {
        int row = rows[i / OUT];
        double size = 0, want = 0;
        if (row >= 0) {
            want = want_of(&p, &x, &w, NULL, row, i % OUT, &size);
        }
        expect(&y, i, want, size);
    }
    give(&x);
    give(&w);
    give(&y);
}

static void test_logits(void **state) {
    (void)state;
    for (int level = 0; level <= (int)tr__cpu_isa(); level++) {
        for (int t = 0; t < TYPES; t++) {
            check_logits(types[t], level);
        }
    }
}

// ---- attention

typedef struct attention {
    int64_t batch, heads, pairs, depth, window, positions;
    int64_t ring; // positions of the cache; 0: all
} attention;

static int64_t room_of(const attention *a) {
    return a->ring > 0 ? a->ring : a->positions;
}

static int64_t pitch_of(const attention *a) {
    return (a->heads + 2 * a->pairs) * a->depth;
}

// What head `h` at a position of a sample comes to. qkv: all positions.
static void attend(const attention *a, const float *qkv, int64_t position, int64_t h,
                   double *y) {
    int64_t pitch = pitch_of(a), shared = h / (a->heads / a->pairs);
    int64_t oldest = a->window > 0 ? position - a->window + 1 : 0;
    const float *q = qkv + position * pitch + h * a->depth;
    double sum = 0;
    memset(y, 0, (size_t)a->depth * sizeof *y);
    for (int64_t key = oldest > 0 ? oldest : 0; key <= position; key++) {
        const float *k = qkv + key * pitch + (a->heads + shared) * a->depth;
        double score = 0;
        for (int64_t d = 0; d < a->depth; d++) {
            score += (double)q[d] * k[d];
        }
        double power = exp(score / sqrt((double)a->depth));
        sum += power;
        for (int64_t d = 0; d < a->depth; d++) {
            y[d] += power * k[a->pairs * a->depth + d];
        }
    }
    for (int64_t d = 0; d < a->depth; d++) {
        y[d] /= sum;
    }
}

static tr_op_desc describe_piece(const attention *a, tr_dtype type, int64_t piece,
                                 int level, int workers) {
    tr_tensor_desc cache = {type,
                            TR_SHAPE4(a->batch, 2 * a->pairs, room_of(a), a->depth)};
    tr_attention_attr attr = {.heads = (int32_t)a->heads,
                              .kv_heads = (int32_t)a->pairs,
                              .window = (int32_t)a->window};
    tr_op_desc desc = {
        .op = &tr__op_attention_cached,
        .in_count = 2,
        .out_count = 2,
        .in = {{type, TR_SHAPE3(a->batch, piece, pitch_of(a))}, cache},
        .out = {{type, TR_SHAPE3(a->batch, piece, a->heads * a->depth)}, cache},
        .fresh = 3,
        .inference = true,
        .target = {.level = level, .workers = workers},
    };
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

// Rows [position, position + piece) of every sample of `all`, as one tensor.
static void cut(const attention *a, const numbers *all, int64_t width, int64_t position,
                int64_t piece, char *to) {
    size_t row = (size_t)width * tr_dtype_bytes(all->type);
    for (int64_t b = 0; b < a->batch; b++) {
        memcpy(to + (size_t)(b * piece) * row,
               (const char *)all->data + (size_t)(b * a->positions + position) * row,
               (size_t)piece * row);
    }
}

static void check_piece(const attention *a, const numbers *qkv, const numbers *y,
                        int64_t position, int64_t piece) {
    double *want = malloc((size_t)a->depth * sizeof *want);
    int64_t width = a->heads * a->depth;
    assert_non_null(want);
    for (int64_t i = 0; i < a->batch * piece * a->heads; i++) {
        int64_t row = i / a->heads, head = i % a->heads, b = row / piece;
        attend(a, qkv->f32 + b * a->positions * pitch_of(a), position + row % piece,
               head, want);
        for (int64_t d = 0; d < a->depth; d++) {
            expect(y, row * width + head * a->depth + d, want[d], 0.3);
        }
    }
    free(want);
}

// All positions, some at a time; the last pieces are single ones.
static void check_attention(const attention *a, tr_dtype type, int64_t piece, int level,
                            int workers) {
    int64_t pitch = pitch_of(a), width = a->heads * a->depth;
    numbers qkv = make(type, a->batch * a->positions * pitch, 1.5f, 1);
    numbers cache = make(type, a->batch * 2 * a->pairs * room_of(a) * a->depth, 9, 2);
    for (int64_t position = 0; position < a->positions;) {
        int64_t count = position + piece <= a->positions ? piece : 1;
        numbers part = make(type, a->batch * count * pitch, 1, 3);
        numbers y = make(type, a->batch * count * width, 9, 4);
        tr_run_context run = {.position = position};
        tr_op_desc desc = describe_piece(a, type, count, level, workers);
        tr_launch what = {
            .in = {part.data, cache.data}, .out = {y.data, cache.data}, .run = &run};
        cut(a, &qkv, pitch, position, count, part.data);
        launch(&desc, &what);
        take_back(&y);
        check_piece(a, &qkv, &y, position, count);
        give(&part);
        give(&y);
        position += count;
    }
    give(&qkv);
    give(&cache);
}

static void test_attention(void **state) {
    static const attention shapes[] = {
        {1, 1, 1, 1, 0, 5, 0},   {2, 4, 2, 6, 0, 21, 0},     {1, 9, 3, 64, 0, 300, 0},
        {1, 2, 1, 33, 5, 40, 0}, {1, 4, 4, 80, 130, 280, 0}, {3, 3, 1, 18, 1, 9, 0},
    };
    (void)state;
    for (int level = -1; level <= (int)tr__cpu_isa(); level++) {
        for (int t = 0; t < (level < 0 ? 1 : TYPES); t++) {
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                check_attention(&shapes[i], types[t], 7, level, 2);
                check_attention(&shapes[i], types[t], shapes[i].positions, level, 1);
            }
        }
    }
}

// A ring that later positions go round in. The window and a piece fill the first one.
static void test_ring(void **state) {
    static const attention shapes[] = {
        {1, 2, 1, 33, 122, 400, 128},
        {2, 4, 2, 6, 5, 300, 128},
        {1, 4, 4, 80, 130, 700, 256},
    };
    (void)state;
    for (int level = -1; level <= (int)tr__cpu_isa(); level++) {
        for (int t = 0; t < (level < 0 ? 1 : TYPES); t++) {
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                check_attention(&shapes[i], types[t], 7, level, 2);
                check_attention(&shapes[i], types[t], 1, level, 1);
            }
        }
    }
}

// A piece of positions that the cache has no room for is not written.
static void check_full(const attention *a, int64_t piece, int64_t position, int level) {
    int64_t count = 2 * a->pairs * room_of(a) * a->depth;
    numbers qkv = make(TR_F32, piece * pitch_of(a), 1, 1);
    numbers y = make(TR_F32, piece * a->heads * a->depth, 1, 2);
    numbers cache = make(TR_F32, count, 1, 3);
    tr_status failed = TR_OK;
    tr_run_context run = {.position = position};
    tr_op_desc desc = describe_piece(a, TR_F32, piece, level, 1);
    tr_launch what = {.in = {qkv.data, cache.data},
                      .out = {y.data, cache.data},
                      .run = &run,
                      .failed = &failed};
    launch(&desc, &what);
    assert_int_equal(failed, TR_INTERNAL);
    assert_memory_equal(cache.data, cache.f32, (size_t)count * sizeof(float));
    give(&qkv);
    give(&y);
    give(&cache);
}

static void test_full(void **state) {
    const attention plain = {1, 2, 1, 4, 0, 6, 0}, whole = {1, 2, 1, 4, 0, 128, 0};
    const attention odd = {1, 2, 1, 4, 3, 100, 0}, narrow = {1, 2, 1, 4, 127, 128, 0};
    (void)state;
    for (int level = -1; level <= (int)tr__cpu_isa(); level++) {
        check_full(&plain, 2, 5, level);
        check_full(&plain, 2, -1, level);
        check_full(&whole, 1, 128, level);  // all keys are seen: no ring
        check_full(&odd, 1, 100, level);    // keys that lie together would be torn
        check_full(&narrow, 3, 128, level); // the first query would miss a key
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_rows),  cmocka_unit_test(test_logits),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_ring),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
