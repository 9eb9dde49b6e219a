// Labels: slow
// Products in fp8 on CUDA: codes that one op leaves and another finds, and who sums
// fast; rotary embeddings where they lie. On a device of the host's memory and threads.
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "cuda/device.h"
#include "cuda/trained.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/linear_fp8/linear_fp8.h"
#include "plan/flow/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 37, IN = 80, OUT = 96 };

// ---- one op after the other

typedef struct operands {
    test_memory dy, x, weight, dx, dweight;
} operands;

static test_memory fill(int64_t count, int64_t salt) {
    test_memory memory = test_memory_take((size_t)count * sizeof(uint16_t));
    for (int64_t i = 0; i < count; i++) {
        ((uint16_t *)memory.data)[i] =
            tr__bf16_of_f32((float)((i * 41 + salt * 17) % 83 - 41) / 29);
    }
    return memory;
}

static operands open_operands(void) {
    return (operands){.dy = fill(ROWS * OUT, 1),
                      .x = fill(ROWS * IN, 2),
                      .weight = fill(IN * OUT, 3),
                      .dx = test_memory_take(ROWS * IN * sizeof(uint16_t)),
                      .dweight = test_memory_take(IN * OUT * sizeof(float))};
}

static void close_operands(operands *o) {
    test_memory *all[] = {&o->dy, &o->x, &o->weight, &o->dx, &o->dweight};
    for (int i = 0; i < 5; i++) {
        assert_true(test_memory_intact(all[i]));
        test_memory_give(all[i]);
    }
}

static tr_op_desc desc_of(bool weight, tr_weight_layout layout) {
    const tr_linear_attr attr = {layout, TR_ACTIVATION_NONE};
    bool in_out = layout == TR_WEIGHT_IN_OUT;
    tr_tensor_desc dy = {TR_BF16, TR_SHAPE2(ROWS, OUT)};
    tr_tensor_desc x = {TR_BF16, TR_SHAPE2(ROWS, IN)};
    tr_shape matrix = in_out ? TR_SHAPE2(IN, OUT) : TR_SHAPE2(OUT, IN);
    tr_op_desc desc = {
        .op = weight ? &tr__op_linear_fp8_backward_weight
                     : &tr__op_linear_fp8_backward_input,
        .in_count = 2,
        .out_count = 1,
        .in = {dy, weight ? x : (tr_tensor_desc){TR_BF16, matrix}},
        .out = {weight ? (tr_tensor_desc){TR_F32, matrix} : x},
        .fresh = 1,
        .target = {.backend = TR_BACKEND_CUDA, .level = TR_CUDA_SM_90, .workers = 1}};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

// Works in `work`, of which it may touch what it says that it needs.
static void run(const tr_op_desc *desc, operands *o, test_memory *work,
                const test_memory *shared) {
    bool weight = desc->op == &tr__op_linear_fp8_backward_weight;
    const tr_kernel *kernel = tr__cuda_kernel(desc);
    tr_run_context context = {.rows = INT64_MAX};
    assert_true(kernel->supports(desc));
    *work = test_memory_take(kernel->workspace(desc, NULL));
    tr_launch launch = {.in = {o->dy.data, weight ? o->x.data : o->weight.data},
                        .out = {weight ? o->dweight.data : o->dx.data},
                        .workspace = work->data,
                        .shared = shared ? shared->data : NULL,
                        .run = &context};
    test_launch_prepared(kernel, desc, NULL, &launch);
    assert_true(test_memory_intact(work));
}

// The weight's gradient first, or the input's: what is left serves the other one, whose
// dy is spoilt by then, to the same bits.
static void codes_serve_both(tr_weight_layout layout, bool weight_first) {
    tr_op_desc first = desc_of(weight_first, layout);
    tr_op_desc second = desc_of(!weight_first, layout);
    operands alone = open_operands(), shared = open_operands();
    test_memory work[4];
    assert_true(tr__cuda_kernel(&first)->shares(&first, &second));
    assert_false(tr__cuda_kernel(&first)->shares(&first, &first));
    run(&first, &alone, &work[0], NULL);
    run(&second, &alone, &work[1], NULL);
    first.leaves = second.finds = true;
    run(&first, &shared, &work[2], NULL);
    memset(shared.dy.data, 0xFF, shared.dy.bytes);
    run(&second, &shared, &work[3], &work[2]);
    assert_memory_equal(alone.dx.data, shared.dx.data, alone.dx.bytes);
    assert_memory_equal(alone.dweight.data, shared.dweight.data, alone.dweight.bytes);
    for (int i = 0; i < 4; i++) {
        test_memory_give(&work[i]);
    }
    close_operands(&alone);
    close_operands(&shared);
}

static void codes_serve_both_products(void **state) {
    (void)state;
    for (int way = 0; way < 8; way++) {
        if (way & 4) {
            setenv("TR_CUDA_DESCENDING", "1", 1);
        } else {
            unsetenv("TR_CUDA_DESCENDING");
        }
        codes_serve_both(way & 1 ? TR_WEIGHT_IN_OUT : TR_WEIGHT_OUT_IN, way & 2);
    }
    unsetenv("TR_CUDA_DESCENDING");
}

// ---- programs

static void open_run(const char *folder, const char *const *set, size_t count,
                     trial *t) {
    char path[1024];
    run_options options = {
        .file = "run.json", .set = set, .set_count = count, .resume = "never"};
    snprintf(path, sizeof path, "%s/%s", TR_TEST_DATA, folder);
    assert_int_equal(chdir(path), 0);
    trial_open(t, &options);
}

typedef struct seen {
    int leaves, finds, turns, in_place;
} seen;

static void look(const tr_program *program, seen *s) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        bool turns = strncmp(at->desc.op->name, "rope", 4) == 0;
        s->leaves += at->desc.leaves;
        s->finds += at->desc.finds;
        s->turns += turns;
        s->in_place += turns && at->in[0].place == at->out[0].place &&
                       at->in[0].offset == at->out[0].offset;
        if (at->desc.finds) {
            assert_true((at - at->shared)->desc.leaves);
            assert_int_equal((at - at->shared)->in[0].value, at->in[0].value);
        }
    }
}

static seen look_at(const trial *t) {
    seen s = {0};
    for (int u = 0; u < t->plan->unit_count; u++) {
        const tr_unit_program *unit = t->plan->units[u].program;
        for (int i = 0;
             t->plan->units[u].owns_program && i < unit->first_of[TR_VARIANTS]; i++) {
            look(&unit->programs[i], &s);
        }
    }
    return s;
}

static void backwards_share_codes(void **state) {
    static const char *const set[] = {"device=cuda", "fp8.enabled=true"};
    trial t;
    (void)state;
    open_run("goldens/gpt2", set, 2, &t);
    seen s = look_at(&t);
    assert_int_equal(s.leaves, 4); // a block's products, of one kind of blocks
    assert_int_equal(s.finds, 4);
    int before = test_device_fast();
    trial_steps(&t, 2, NULL);
    assert_int_equal(test_device_fast(), before);
    trial_close(&t);
}

// Backwards never do.
static void forwards_sum_fast_where_asked(void **state) {
    static const char *const set[] = {"device=cuda", "fp8.enabled=true",
                                      "fp8.fast_accumulation=true",
                                      "train_micro_batch_size_per_gpu=6"};
    trial t;
    (void)state;
    open_run("goldens/gpt2", set, 4, &t);
    int before = test_device_fast();
    trial_steps(&t, 1, NULL);
    assert_int_equal(test_device_fast() - before, 2 * 4);
    trial_close(&t);
}

static void rotary_embeddings_stay_where_they_lie(void **state) {
    static const char *const set[] = {"device=cuda", "bf16.enabled=true"};
    static const char *const folders[] = {"goldens/llama", "goldens/mistral-packed"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        trial t;
        open_run(folders[i], set, 2, &t);
        seen s = look_at(&t);
        assert_true(s.turns > 0);
        assert_int_equal(s.in_place, s.turns);
        trial_close(&t);
    }
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_serve_both_products),
        cmocka_unit_test(backwards_share_codes),
        cmocka_unit_test(forwards_sum_fast_where_asked),
        cmocka_unit_test(rotary_embeddings_stay_where_they_lie),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
