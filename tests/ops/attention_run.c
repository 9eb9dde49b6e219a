#include "ops/attention_run.h"

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "ops/launch.h"
#include "ops/nn/attention/attention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const tr_run_context test_attention_context = {
    .seed = 11, .step = 3, .sample = 100, .unit = 2};

tr_op_desc test_attention_describe(const test_attention *s, bool backward) {
    int64_t width = s->heads * s->depth;
    tr_dtype type = s->type == TR_NONE ? TR_F32 : s->type;
    tr_tensor_desc qkv = {type, TR_SHAPE3(s->batch, s->context, 3 * width)};
    tr_tensor_desc y = {type, TR_SHAPE3(s->batch, s->context, width)};
    tr_tensor_desc lse = {TR_F32, TR_SHAPE3(s->batch, s->heads, s->context)};
    tr_attention_attr attr = {.heads = (int32_t)s->heads,
                              .dropout = s->dropout,
                              .draw_id = TEST_ATTENTION_DRAW};
    tr_op_desc desc = {
        .op = &tr__op_attention,
        .in_count = 1,
        .out_count = 2,
        .in = {qkv},
        .out = {y, lse},
        .fresh = 3,
        .accumulate = 3,
        .target = {.workers = s->threads, .level = -1},
    };
    if (backward) {
        desc = (tr_op_desc){
            .op = &tr__op_attention_backward,
            .in_count = 4,
            .out_count = 1,
            .in = {y, qkv, y, lse},
            .out = {qkv},
            .fresh = 1,
            .accumulate = 1,
            .target = {.workers = s->threads, .level = -1},
        };
    }
    if (s->positions) {
        desc.in[desc.in_count++] =
            (tr_tensor_desc){TR_I32, TR_SHAPE2(s->batch, s->context)};
    }
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

test_attention_inputs test_attention_inputs_take(const test_attention *s) {
    tr_op_desc desc = test_attention_describe(s, false);
    test_attention_inputs inputs = {0};
    test_tensor_take(&inputs.qkv, desc.in[0]);
    test_tensor_take(&inputs.dy, desc.out[0]);
    test_tensor_fill(&inputs.qkv, 1, 1);
    test_tensor_fill(&inputs.dy, 1, 2);
    return inputs;
}

void test_attention_inputs_give(test_attention_inputs *inputs) {
    test_tensor_give(&inputs->qkv);
    test_tensor_give(&inputs->dy);
}

// Those of 16-bit tensors: the reference on what they are widened to, then all that
// this processor can run.
static const tr_kernel *half_kernel(const tr_op_desc *desc, int which) {
    if (which == 0) {
        return &tr__widened;
    }
    const tr_cpu_kernels *row = tr__cpu_kernels_of(desc->op);
    for (int half = 0; half < TR_CPU_HALVES; half++) {
        for (int isa = 0; isa <= (int)tr__cpu_isa(); isa++) {
            const tr_kernel *kernel = row->half[half][isa];
            if (kernel && kernel->supports(desc) && --which == 0) {
                return kernel;
            }
        }
    }
    return NULL;
}

static const tr_kernel *kernel_for(const tr_op_desc *desc, int which) {
    return desc->in[0].dtype == TR_F32 ? test_kernel(desc->op, which)
                                       : half_kernel(desc, which);
}

bool test_attention_has(const test_attention *s, int which) {
    tr_op_desc desc = test_attention_describe(s, false);
    return kernel_for(&desc, which) != NULL;
}

test_attention_results test_attention_run(const test_attention *s, int which,
                                          const test_attention_inputs *inputs,
                                          bool add) {
    tr_op_desc forward = test_attention_describe(s, false);
    tr_op_desc backward = test_attention_describe(s, true);
    test_attention_results r = {0};
    test_tensor_take(&r.y, forward.out[0]);
    test_tensor_take(&r.lse, forward.out[1]);
    test_tensor_take(&r.dqkv, backward.out[0]);
    if (add) {
        test_tensor_fill(&r.dqkv, 1, 3);
    }
    const void *qkv = inputs->qkv.memory.data, *dy = inputs->dy.memory.data;
    void *y = r.y.memory.data, *lse = r.lse.memory.data;
    tr_launch launch = {
        .in = {qkv, s->positions}, .out = {y, lse}, .run = &test_attention_context};
    test_launch(kernel_for(&forward, which), &forward, &launch);
    launch = (tr_launch){.in = {dy, qkv, y, lse, s->positions},
                         .out = {r.dqkv.memory.data},
                         .accumulate = add,
                         .run = &test_attention_context};
    test_launch(kernel_for(&backward, which), &backward, &launch);
    return r;
}

void test_attention_results_give(test_attention_results *results) {
    test_tensor *tensor[] = {&results->y, &results->lse, &results->dqkv};
    for (int i = 0; i < 3; i++) {
        assert_true(test_memory_intact(&tensor[i]->memory));
        test_tensor_give(tensor[i]);
    }
}
