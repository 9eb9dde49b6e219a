// Attention over a cache on CUDA, in pieces, against the reference's attention of all
// positions at once; on a device of the host's memory, in both orders of threads.
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/attention/attention.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct shape {
    int64_t batch, heads, pairs, depth, window, positions, room, piece;
    int64_t first; // position; those before it are in the cache
} shape;

static int64_t pitch_of(const shape *s) {
    return (s->heads + 2 * s->pairs) * s->depth;
}

static float get(tr_dtype type, const void *data, int64_t i) {
    return type == TR_F32    ? ((const float *)data)[i]
           : type == TR_BF16 ? tr__bf16_to_f32(((const uint16_t *)data)[i])
                             : tr__f16_to_f32(((const uint16_t *)data)[i]);
}

static void put(tr_dtype type, void *data, int64_t i, float x) {
    if (type == TR_F32) {
        ((float *)data)[i] = x;
    } else {
        ((uint16_t *)data)[i] =
            type == TR_BF16 ? tr__bf16_of_f32(x) : tr__f16_of_f32(x);
    }
}

static void *take(tr_dtype type, int64_t count) {
    void *data =
        aligned_alloc(64, ((size_t)count * tr_dtype_bytes(type) + 63) / 64 * 64);
    assert_non_null(data);
    memset(data, 0xFF, (size_t)count * tr_dtype_bytes(type)); // not a number
    return data;
}

// Uniform in [-1, 1], rounded to the type.
static void *draw(tr_dtype type, int64_t count) {
    void *data = take(type, count);
    uint64_t seed = 9;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        put(type, data, i, (float)(seed >> 40) / (float)(1 << 23) - 1);
    }
    return data;
}

static tr_op_desc describe(const shape *s, tr_dtype type, int64_t positions) {
    tr_attention_attr attr = {.heads = (int32_t)s->heads,
                              .kv_heads = (int32_t)s->pairs,
                              .window = (int32_t)s->window};
    tr_op_desc desc = {
        .op = &tr__op_attention,
        .in_count = 1,
        .out_count = 2,
        .in = {{type, TR_SHAPE3(s->batch, positions, pitch_of(s))}},
        .out = {{type, TR_SHAPE3(s->batch, positions, s->heads * s->depth)},
                {TR_F32, TR_SHAPE3(s->batch, s->heads, positions)}},
        .fresh = 3,
        .inference = true,
        .target = {.level = -1, .workers = 1},
    };
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

// y of all positions, from qkv in f32.
static float *reference(const shape *s, tr_dtype type, const void *qkv) {
    int64_t rows = s->batch * s->positions, count = rows * pitch_of(s);
    float *wide = take(TR_F32, count), *y = take(TR_F32, rows * s->heads * s->depth);
    tr_op_desc desc = describe(s, TR_F32, s->positions);
    for (int64_t i = 0; i < count; i++) {
        wide[i] = get(type, qkv, i);
    }
    test_launch(tr__op_attention.reference, &desc,
                &(tr_launch){.in = {wide}, .out = {y}});
    free(wide);
    return y;
}

// Of some positions of each sample, all columns, as a tensor of their own.
static test_memory cut(const shape *s, tr_dtype type, const char *all, int64_t position,
                       int64_t count) {
    int64_t width = pitch_of(s);
    test_memory part =
        test_memory_take((size_t)(s->batch * count * width) * tr_dtype_bytes(type));
    size_t row = (size_t)width * tr_dtype_bytes(type);
    for (int64_t b = 0; b < s->batch; b++) {
        memcpy((char *)part.data + (size_t)(b * count) * row,
               all + (size_t)(b * s->positions + position) * row, (size_t)count * row);
    }
    return part;
}

static void run_piece(const shape *s, tr_dtype type, void *part, void *cache, void *y,
                      int64_t position, int64_t count, tr_status *failed) {
    tr_op_desc desc = describe(s, type, count);
    tr_run_context run = {.position = position};
    desc.op = &tr__op_attention_cached;
    desc.in_count = 2;
    desc.in[1] = desc.out[1] =
        (tr_tensor_desc){type, TR_SHAPE4(s->batch, 2 * s->pairs, s->room, s->depth)};
    desc.target.backend = TR_BACKEND_CUDA;
    const tr_kernel *kernel = tr__cuda_kernel(&desc);
    assert_non_null(kernel);
    test_launch(
        kernel, &desc,
        &(tr_launch){
            .in = {part, cache}, .out = {y, cache}, .run = &run, .failed = failed});
}

static void check_piece(const shape *s, tr_dtype type, const void *y, const float *want,
                        int64_t position, int64_t count) {
    static const double steps[] = {
        [TR_F32] = 3e-6, [TR_BF16] = 1.0 / 128, [TR_F16] = 1.0 / 1024};
    int64_t width = s->heads * s->depth;
    for (int64_t i = 0; i < s->batch * count * width; i++) {
        int64_t row = i / width, b = row / count;
        int64_t at = (b * s->positions + position + row % count) * width + i % width;
        if (!(fabs(get(type, y, i) - want[at]) <=
              steps[type] * (fabs(want[at]) + 0.5))) {
            fail_msg("type %d, position %lld, element %lld: %g, not %g", (int)type,
                     (long long)(position + row % count), (long long)(i % width),
                     (double)get(type, y, i), (double)want[at]);
        }
    }
}

// What earlier launches would have put into the cache: keys and values of all positions
// before the first.
static void fill_cache(const shape *s, tr_dtype type, const void *qkv, void *cache) {
    int64_t keys = s->heads * s->depth, columns = 2 * s->pairs * s->depth;
    size_t bytes = tr_dtype_bytes(type);
    for (int64_t i = 0; i < s->batch * s->first * columns; i++) {
        int64_t column = i % columns, place = i / columns % s->first;
        int64_t b = i / columns / s->first, head = column / s->depth;
        int64_t to = ((b * 2 * s->pairs + head) * s->room + place % s->room) * s->depth;
        int64_t from = (b * s->positions + place) * pitch_of(s) + keys + column;
        memcpy((char *)cache + (size_t)(to + column % s->depth) * bytes,
               (const char *)qkv + (size_t)from * bytes, bytes);
    }
}

// All positions from the first on, some at a time; the last pieces are single ones.
static void check(const shape *s, tr_dtype type) {
    int64_t rows = s->batch * s->positions, width = s->heads * s->depth;
    void *qkv = draw(type, rows * pitch_of(s));
    test_memory cache = test_memory_take(
        (size_t)(s->batch * 2 * s->pairs * s->room * s->depth) * tr_dtype_bytes(type));
    float *want = reference(s, type, qkv);
    fill_cache(s, type, qkv, cache.data);
    for (int64_t position = s->first; position < s->positions;) {
        int64_t count = position + s->piece <= s->positions ? s->piece : 1;
        test_memory part = cut(s, type, qkv, position, count);
        test_memory y =
            test_memory_take((size_t)(s->batch * count * width) * tr_dtype_bytes(type));
        tr_status failed = TR_OK;
        run_piece(s, type, part.data, cache.data, y.data, position, count, &failed);
        assert_int_equal(failed, TR_OK);
        assert_true(test_memory_intact(&y) && test_memory_intact(&cache));
        check_piece(s, type, y.data, want, position, count);
        position += count;
        test_memory_give(&part);
        test_memory_give(&y);
    }
    free(qkv);
    test_memory_give(&cache);
    free(want);
}

static void check_types(const shape *shapes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check(&shapes[i], TR_F32);
        check(&shapes[i], TR_BF16);
        check(&shapes[i], TR_F16);
    }
}

// Single positions behind many, in a cache that is cut into parts: shared keys,
// windows, rings, heads in pieces, samples side by side, parts that have no keys yet,
// more heads than a block has rows.
static void one_query_reads_a_long_cache(void **state) {
    static const shape shapes[] = {
        {1, 4, 2, 64, 0, 260, 260, 1, 257},   {1, 8, 1, 40, 0, 258, 600, 1, 256},
        {2, 3, 3, 7, 0, 132, 150, 1, 130},    {1, 2, 1, 136, 0, 194, 200, 1, 192},
        {1, 6, 2, 32, 100, 262, 270, 1, 260}, {1, 2, 2, 128, 3, 196, 196, 1, 195},
        {1, 66, 1, 4, 0, 132, 140, 1, 131},   {1, 4, 2, 32, 150, 702, 256, 1, 700},
    };
    (void)state;
    unsetenv("TR_CUDA_DESCENDING");
    check_types(shapes, sizeof shapes / sizeof *shapes);
    setenv("TR_CUDA_DESCENDING", "1", 1);
    check_types(shapes, sizeof shapes / sizeof *shapes);
    unsetenv("TR_CUDA_DESCENDING");
}

static void pieces_make_the_whole(void **state) {
    static const shape shapes[] = {
        {1, 1, 1, 1, 0, 3, 3, 2, 0},     {2, 4, 2, 6, 0, 10, 10, 7, 0},
        {1, 3, 1, 64, 0, 70, 80, 67, 0}, {1, 2, 1, 33, 5, 68, 68, 66, 0},
        {1, 2, 2, 136, 0, 5, 5, 3, 0},
    };
    (void)state;
    unsetenv("TR_CUDA_DESCENDING");
    check_types(shapes, sizeof shapes / sizeof *shapes);
    setenv("TR_CUDA_DESCENDING", "1", 1);
    check_types(shapes, sizeof shapes / sizeof *shapes);
    unsetenv("TR_CUDA_DESCENDING");
}

// Later positions go round in the ring. The window and a piece fill the first one.
static void a_ring_goes_round(void **state) {
    static const shape shapes[] = {
        {1, 2, 1, 32, 62, 330, 128, 67, 0},
        {1, 1, 1, 6, 5, 400, 128, 100, 0},
    };
    (void)state;
    check_types(shapes, sizeof shapes / sizeof *shapes);
}

// Positions that the cache has no room for are not written.
static void a_full_cache_is_refused(void **state) {
    static const shape s = {1, 2, 1, 4, 0, 6, 6, 2, 0};
    test_memory qkv = test_memory_take(2 * 16 * sizeof(float));
    test_memory y = test_memory_take(2 * 8 * sizeof(float));
    test_memory cache = test_memory_take(2 * 6 * 4 * sizeof(float));
    tr_status failed = TR_OK;
    (void)state;
    memset(cache.data, 0, cache.bytes);
    run_piece(&s, TR_F32, qkv.data, cache.data, y.data, 5, 2, &failed);
    assert_int_equal(failed, TR_INTERNAL);
    for (size_t i = 0; i < cache.bytes; i++) {
        assert_int_equal(((const char *)cache.data)[i], 0);
    }
    test_memory_give(&qkv);
    test_memory_give(&y);
    test_memory_give(&cache);
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_the_whole),
        cmocka_unit_test(one_query_reads_a_long_cache),
        cmocka_unit_test(a_ring_goes_round),
        cmocka_unit_test(a_full_cache_is_refused),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
