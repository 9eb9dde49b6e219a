// What kernels that call a library tell it: which samples, where these lie, and in how
// much memory it may work. The library only notes that.
#include "backend/attention.h"
#include "backend/cuda/attend.h"
#include "backend/cuda/kernels.h"
#include "cuda/device.h"
#include "ops/nn/attention/attention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { QKV, Y, LSE, DY, DQKV, OPERANDS, CALLS = 128, KNOWN = 919 };
#define PLACE(i)  ((char *)((uintptr_t)1 << 40) + (uintptr_t)(i) * ((uintptr_t)1 << 34))
#define WORKSPACE (PLACE(OPERANDS) + 64) // not a multiple of 256

static struct {
    tr_cuda_attend all[CALLS];
    int count;
} calls;

static int version(const char **why) {
    *why = NULL;
    return KNOWN;
}

static tr_status ready(const tr_cuda_attend_shape *shape, tr_error *err) {
    (void)shape;
    (void)err;
    return TR_OK;
}

static int attend(const tr_cuda_attend *given, void *stream) {
    (void)stream;
    assert_true(calls.count < CALLS);
    calls.all[calls.count++] = *given;
    return 0;
}

typedef struct example {
    int64_t batch, context, heads, pairs, depth;
    int64_t at_once; // samples; 0: own kernels compute it
    int64_t heads_at_once;
} example;

static tr_op_desc describe(const example *e, bool backward) {
    tr_attention_attr attr = {.heads = (int32_t)e->heads,
                              .kv_heads = (int32_t)e->pairs};
    int64_t width = e->heads * e->depth, pitch = width + 2 * e->pairs * e->depth;
    tr_tensor_desc qkv = {TR_BF16, TR_SHAPE3(e->batch, e->context, pitch)};
    tr_tensor_desc y = {TR_BF16, TR_SHAPE3(e->batch, e->context, width)};
    tr_tensor_desc lse = {TR_F32, TR_SHAPE3(e->batch, e->heads, e->context)};
    tr_op_desc desc = {.op = backward ? &tr__op_attention_backward : &tr__op_attention,
                       .in_count = backward ? 4 : 1,
                       .out_count = backward ? 1 : 2,
                       .fresh = 3,
                       .target = {.backend = TR_BACKEND_CUDA,
                                  .level = TR_CUDA_SM_90,
                                  .workers = 132,
                                  .attention = KNOWN}};
    const tr_tensor_desc in[2][4] = {{qkv}, {y, qkv, y, lse}};
    const tr_tensor_desc out[2][2] = {{y, lse}, {qkv}};
    memcpy(desc.in, in[backward], sizeof in[backward]);
    memcpy(desc.out, out[backward], sizeof out[backward]);
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void launch(const tr_op_desc *desc, const tr_kernel *kernel, bool backward) {
    const tr_run_context run = {.rows = INT64_MAX};
    tr_status failed = TR_OK;
    tr_launch launch = {.run = &run, .workspace = WORKSPACE, .failed = &failed};
    if (backward) {
        launch.in[0] = PLACE(DY);
        launch.in[1] = PLACE(QKV);
        launch.in[2] = PLACE(Y);
        launch.in[3] = PLACE(LSE);
        launch.out[0] = PLACE(DQKV);
    } else {
        launch.in[0] = PLACE(QKV);
        launch.out[0] = PLACE(Y);
        launch.out[1] = PLACE(LSE);
    }
    calls.count = 0;
    kernel->launch(desc, NULL, &launch);
    assert_int_equal(failed, TR_OK);
}

// Of a call: operands of its first sample and of its first head of keys.
static void check_place(const tr_cuda_attend *a, const example *e, int64_t sample,
                        int64_t pair) {
    int64_t width = e->heads * e->depth, keys = e->pairs * e->depth;
    int64_t token = width + 2 * keys, head = pair * (e->heads / e->pairs);
    char *first = PLACE(QKV) + 2 * sample * e->context * token;
    char *key = first + 2 * (width + pair * e->depth);
    int64_t y = 2 * (sample * e->context * width + head * e->depth);
    assert_ptr_equal(a->q, first + 2 * head * e->depth);
    assert_ptr_equal(a->k, key);
    assert_ptr_equal(a->v, key + 2 * keys);
    assert_ptr_equal(a->y, PLACE(Y) + y);
    assert_ptr_equal(a->lse, PLACE(LSE) + 4 * (sample * e->heads + head) * e->context);
    assert_int_equal(a->of.pitch, token);
    assert_int_equal(a->of.width, width);
    if (a->of.backward) {
        assert_ptr_equal(a->dq, PLACE(DQKV) + ((const char *)a->q - PLACE(QKV)));
        assert_ptr_equal(a->dk, PLACE(DQKV) + ((const char *)a->k - PLACE(QKV)));
        assert_ptr_equal(a->dv, PLACE(DQKV) + ((const char *)a->v - PLACE(QKV)));
        assert_ptr_equal(a->dy, PLACE(DY) + y);
    }
}

// All that it is lent lies in what the plan has.
static void check_memory(const tr_cuda_attend *a, size_t bytes) {
    const char *work = a->workspace, *end = WORKSPACE + bytes;
    assert_int_equal((uintptr_t)work % 256, 0);
    assert_true(work >= WORKSPACE && work + a->of.workspace <= end);
    assert_int_equal(a->of.workspace, tr__cuda_attend_room(&a->of));
    if (a->of.backward) {
        int64_t rows = a->of.batch * a->of.heads * a->of.context;
        assert_true((char *)a->delta >= WORKSPACE &&
                    (char *)a->delta + 4 * rows <= work);
    }
}

static void check(const example *e, bool backward) {
    tr_op_desc desc = describe(e, backward);
    const tr_kernel *kernel = tr__cuda_kernel(&desc);
    if (backward && e->at_once == 0) {
        assert_string_equal(kernel->name, "attention_backward.cuda");
        return;
    }
    assert_non_null(strstr(kernel->name, ".cudnn"));
    int64_t samples = backward ? e->at_once : e->batch;
    int64_t heads = backward ? e->heads_at_once : e->heads;
    int64_t parts = e->heads / heads, pairs = e->pairs / parts;
    launch(&desc, kernel, backward);
    assert_int_equal(calls.count, e->batch / samples * parts);
    for (int i = 0; i < calls.count; i++) {
        const tr_cuda_attend *call = &calls.all[i];
        assert_int_equal(call->of.batch, samples);
        assert_int_equal(call->of.heads, heads);
        assert_int_equal(call->of.pairs, pairs);
        check_place(call, e, i / parts * samples, i % parts * pairs);
        check_memory(call, kernel->workspace(&desc, NULL));
    }
}

// Equal parts of the batch, or heads of a sample, as many as work in 256 MiB.
static void parts_are_taken_at_a_time(void **state) {
    static const example all[] = {
        {16, 1024, 12, 12, 64, 8, 12}, // 24 MiB a sample
        {7, 1024, 12, 12, 64, 7, 12},
        {11, 1024, 12, 12, 64, 1, 12}, // a prime number, too many at once
        {4, 1024, 25, 25, 64, 4, 25},  // 50 MiB
        {2, 2048, 32, 32, 128, 1, 32}, // 256 MiB
        {2, 2048, 32, 8, 128, 1, 16},  // and more for keys that are shared
        {1, 4096, 24, 24, 128, 1, 8},  // 32 MiB a head
        {2, 8192, 32, 32, 128, 1, 2},  // 128 MiB
        {1, 8192, 8, 2, 128, 1, 4},    // 528 MiB of heads that share keys
        {1, 8192, 32, 2, 128, 0, 0},   // 2 GiB of them
        {3, 64, 1, 1, 64, 3, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check(&all[i], false);
        check(&all[i], true);
    }
}

// What the library does not compute, or not as it has to be.
static void others_have_own_kernels(void **state) {
    const example e = {2, 128, 4, 2, 64, 2, 4};
    enum { CHANGES = 9 };
    (void)state;
    for (int c = 0; c < CHANGES; c++) {
        tr_op_desc desc = describe(&e, false);
        tr_attention_attr attr;
        memcpy(&attr, desc.attr, sizeof attr);
        attr.dropout = c == 0 ? 0.1f : 0;
        attr.window = c == 1 ? 5 : 0;
        memcpy(desc.attr, &attr, sizeof attr);
        desc.in[0].dtype = desc.out[0].dtype = c == 2 ? TR_F32 : TR_BF16;
        desc.target.level = c == 3 ? TR_CUDA_SM_89 : TR_CUDA_SM_90;
        desc.target.attention = c == 4 ? 918 : c == 5 ? 0 : KNOWN;
        desc.inference = c == 6;
        desc.accumulate = c == 7 ? 1 : 0;
        if (c == 8) { // packed
            desc.in_count = 2;
            desc.in[1] = (tr_tensor_desc){TR_I32, TR_SHAPE2(e.batch, e.context)};
        }
        assert_string_equal(tr__cuda_kernel(&desc)->name, "attention.cuda");
    }
}

static void heads_and_contexts_of_its_own(void **state) {
    static const example odd[] = {{2, 128, 2, 2, 80, 0, 0},
                                  {2, 127, 2, 2, 64, 0, 0},
                                  {2, 32, 2, 2, 64, 0, 0},
                                  {2, 128, 2, 2, 32, 0, 0},
                                  {2, 128, 1, 1, 256, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        tr_op_desc desc = describe(&odd[i], false);
        assert_string_equal(tr__cuda_kernel(&desc)->name, "attention.cuda");
    }
}

// Run files name versions whose room is known, and no others.
static void names_are_of_known_versions(void **state) {
    static const char *const names[] = {TR_ATTENTION_NAMES};
    enum { NAMES = sizeof names / sizeof *names, NEWEST = 1000 };
    int known = 0;
    (void)state;
    assert_int_equal(tr__attention_find("own"), -1);
    for (int i = 1; i < NAMES; i++) {
        int found = tr__attention_find(names[i]);
        char text[32];
        snprintf(text, sizeof text, "cudnn-%d.%d", found / 100, found % 100);
        assert_string_equal(names[i], text);
        assert_string_equal(tr__attention_name(found), text);
        assert_true(tr__cuda_attend_knows(found));
    }
    for (int v = 0; v < NEWEST; v++) {
        known += tr__cuda_attend_knows(v);
    }
    assert_int_equal(known, NAMES - 1);
}

static int bring(void **state) {
    static const tr_cuda_attention_library library = {
        .version = version, .ready = ready, .attend = attend};
    (void)state;
    test_device_set_attention(&library);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_taken_at_a_time),
        cmocka_unit_test(others_have_own_kernels),
        cmocka_unit_test(heads_and_contexts_of_its_own),
        cmocka_unit_test(names_are_of_known_versions),
    };
    return cmocka_run_group_tests(tests, bring, NULL);
}
