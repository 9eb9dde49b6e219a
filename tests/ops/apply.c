#include "ops/apply.h"

#include "backend/backend.h"
#include "base/hash.h"
#include "ops/launch.h"

#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const tr_run_context test_context = {.seed = 7,
                                     .step = 5,
                                     .sample = 11,
                                     .unit = 3,
                                     .rows = INT64_MAX,
                                     .loss_seed = 0.375f,
                                     .fixed_scale = 0x1p20,
                                     .fixed_limit = 0x1p20 * 2};

int test_apply_attention;
int64_t test_apply_launches[TR_BACKEND_COUNT];

static const tr_kernel *find_kernel(tr_op_desc *desc) {
    const tr_kernel *kernel = tr__kernel_find(desc);
    if (!kernel && desc->target.backend != TR_BACKEND_CPU) {
        desc->target = (tr_target){.workers = 1, .level = -1};
        kernel = tr__kernel_find(desc);
    }
    test_apply_launches[desc->target.backend]++;
    if (!kernel) {
        fail_msg("no kernel of %s supports the case", desc->op->name);
    }
    return kernel;
}

static void describe_result(const test_tensor *result, bool both, int i,
                            tr_op_desc *desc, tr_launch *launch) {
    uint32_t bit = 1u << i;
    both = both && result->desc.dtype != TR_F64; // sums are only ever added to
    desc->out[i] = result->desc;
    launch->out[i] = result->memory.data;
    launch->accumulate |= result->there ? bit : 0;
    desc->accumulate |= result->there || both ? bit : 0;
    desc->fresh |= !result->there || both ? bit : 0;
}

static void describe(const test_operands *o, const test_way *way, tr_op_desc *desc,
                     tr_launch *launch) {
    *launch = (tr_launch){.run = &test_context};
    *desc = (tr_op_desc){
        .op = o->op,
        .in_count = o->in_count,
        .out_count = o->out_count,
        .packs = way->both,
        .target = {.backend = way->backend,
                   .workers = way->threads > 0 ? way->threads : 1,
                   .level = way->isa,
                   .attention = test_apply_attention},
    };
    if (o->op->attr_bytes > 0) {
        memcpy(desc->attr, o->attr, o->op->attr_bytes);
    }
    for (int i = 0; i < o->in_count; i++) {
        if (o->in[i]) {
            desc->in[i] = o->in[i]->desc;
            launch->in[i] = o->in[i]->memory.data;
        }
    }
    for (int i = 0; i < o->out_count; i++) {
        if (o->out[i]) {
            describe_result(o->out[i], way->both, i, desc, launch);
        }
    }
}

// Of the inputs that no output lies on top of.
static uint64_t inputs_hash(const test_operands *o) {
    uint64_t hash = 0;
    for (int i = 0; i < o->in_count; i++) {
        if (o->in[i] && o->in[i]->memory.bytes > 0 && o->in[i] != o->out[0]) {
            hash = tr__hash_more(hash, o->in[i]->memory.data, o->in[i]->memory.bytes);
        }
    }
    return hash;
}

static bool all_intact(test_tensor *const *tensors, int count) {
    for (int i = 0; i < count; i++) {
        if (tensors[i] && !test_memory_intact(&tensors[i]->memory)) {
            return false;
        }
    }
    return true;
}

static const char *launch_checked(const tr_kernel *kernel, const tr_op_desc *desc,
                                  void *state, tr_launch *launch,
                                  const test_operands *o) {
    size_t bytes = kernel->workspace ? kernel->workspace(desc, state) : 0;
    test_memory workspace = test_memory_take(bytes);
    bool packs = desc->packs && kernel->packed;
    test_memory packed = test_memory_take(packs ? kernel->packed(desc, state) : 0);
    const char *broken = NULL;
    uint64_t before = inputs_hash(o);
    launch->workspace = workspace.data;
    launch->packed = packed.data;
    test_launch_prepared(kernel, desc, state, launch);
    if (!all_intact(o->in, o->in_count) || !all_intact(o->out, o->out_count)) {
        broken = "wrote outside of its operands";
    } else if (!test_memory_intact(&workspace) || !test_memory_intact(&packed)) {
        broken = "wrote outside of its workspace";
    } else if (inputs_hash(o) != before) {
        broken = "wrote to an input";
    }
    test_memory_give(&workspace);
    test_memory_give(&packed);
    return broken;
}

const char *test_apply(const test_operands *o, const test_way *way) {
    tr_op_desc desc;
    tr_launch launch;
    tr_error err = {0};
    void *state = NULL;
    describe(o, way, &desc, &launch);
    const tr_kernel *kernel = find_kernel(&desc);
    omp_set_num_threads(desc.target.workers);
    if (kernel->prepare && kernel->prepare(&desc, &state, &err) != TR_OK) {
        fail_msg("%s: cannot be prepared: %s", kernel->name, err.message);
    }
    const char *broken = launch_checked(kernel, &desc, state, &launch, o);
    if (kernel->release) {
        kernel->release(state);
    }
    for (int i = 0; i < o->out_count; i++) {
        if (o->out[i]) {
            o->out[i]->there = true;
        }
    }
    return broken;
}
