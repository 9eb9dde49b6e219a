// Labels: slow
// Rows of zeros behind the weight of a vocabulary, which the head's kernels on CUDA ask
// for: the plan has them and proves what becomes of them, they stay zeros, and nothing
// else is changed by them. On a device of the host's memory and threads.
#include "backend/cuda/driver.h"
#include "base/memory.h"
#include "cuda/trained.h"
#include "guard/guard.h"
#include "plan/flow/plan.h"
#include "train/scratch.h"

#include <string.h>
#include <unistd.h>

enum { STEPS = 3, SETTINGS = 4, LINE = 64 };

typedef struct example {
    const char *folder;
    const char *set[SETTINGS];
    int64_t rows;    // of the vocabulary
    bool tied, half; // one buffer with the embedding; bf16
} example;

static void open_run(const example *of, const char *device, const char *more,
                     const char *resume, trial *t) {
    const char *set[SETTINGS + 2] = {device};
    size_t count = 1;
    char path[1024];
    for (int i = 0; i < SETTINGS && of->set[i]; i++) {
        set[count++] = of->set[i];
    }
    set[count] = more;
    run_options options = {
        .file = "run.json", .set = set, .set_count = count + !!more, .resume = resume};
    snprintf(path, sizeof path, "%s/%s", TR_TEST_DATA, of->folder);
    assert_int_equal(chdir(path), 0);
    trial_open(t, &options);
}

// ---- what lies between parameters

// The elements of a range of a flat buffer, which is on the device.
static void *copy_of(const trial *t, const tr_flat_range *range, size_t element) {
    const tr_buffer *buffer = &t->plan->buffers[range->buffer];
    size_t bytes = (size_t)range->count * element;
    void *copy = tr__calloc(1, bytes);
    assert_non_null(copy);
    assert_int_equal(buffer->space, TR_SPACE_DEVICE);
    const void *from = tr__arena_view(t->engine->arenas[TR_SPACE_DEVICE],
                                      (size_t)buffer->offset, bytes);
    assert_int_equal(tr__cuda_driver()->copy(copy, from, bytes, NULL), 0);
    return copy;
}

static bool is_of_param(const tr_plan *plan, int flat, int64_t element) {
    bool of = false;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        of = of || (param->flat == flat && element >= param->offset &&
                    element < param->offset + param->count);
    }
    return of;
}

// Returns how many zeros lie there.
static int64_t check_gaps(const trial *t, int flat, const tr_flat_range *range,
                          size_t element) {
    static const char zeros[sizeof(double)] = {0};
    int64_t gaps = 0;
    if (range->buffer < 0 || t->plan->buffers[range->buffer].space != TR_SPACE_DEVICE) {
        return 0;
    }
    char *copy = copy_of(t, range, element);
    for (int64_t i = 0; i < range->count; i++) {
        if (!is_of_param(t->plan, flat, range->first + i)) {
            assert_memory_equal(copy + (size_t)i * element, zeros, element);
            gaps++;
        }
    }
    tr__free(copy);
    return gaps;
}

static int64_t check_all_gaps(const trial *t) {
    const tr_plan *plan = t->plan;
    size_t used = (size_t)tr__param_bytes(plan), f32 = sizeof(float);
    int64_t gaps = 0;
    for (int f = 0; f < (int)plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        gaps += check_gaps(t, f, &flat->param, used);
        check_gaps(t, f, &flat->master, f32);
        check_gaps(t, f, &flat->sums, (size_t)tr__sum_bytes(plan));
        for (int s = 0; s < plan->request.optimizer_states; s++) {
            check_gaps(t, f, &flat->state[s], f32);
        }
    }
    return gaps;
}

// ---- the plan

static int64_t elements_of(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        count += plan->params[i].count;
    }
    return count;
}

// Of the parameter that the last unit's head multiplies.
static const tr_operand *find_weight(const tr_plan *plan, const tr_operand **gradient) {
    const tr_unit_program *unit = plan->units[plan->unit_count - 1].program;
    const tr_program *program = tr__unit_piece(unit, TR_VARIANT_BACKWARD, 0);
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        if (strncmp(at->desc.op->name, "head", 4) == 0) {
            *gradient = &at->out[1];
            assert_int_equal(at->desc.in_padded, at->in[1].padding ? 1 << 1 : 0);
            assert_int_equal(at->desc.out_padded, at->out[1].padding ? 1 << 1 : 0);
            return &at->in[1];
        }
    }
    fail_msg("the last unit has no head");
    return NULL;
}

static void check_plan(const trial *cpu, const trial *cuda, const example *of) {
    const tr_operand *gradient = NULL;
    const tr_operand *weight = find_weight(cuda->plan, &gradient);
    int64_t element = tr__param_bytes(cuda->plan);
    int64_t width = weight->padding / element / (LINE - of->rows % LINE);
    assert_true(weight->padding > 0);
    assert_int_equal(weight->padding, (LINE - of->rows % LINE) * width * element);
    assert_int_equal(gradient->padding * element, weight->padding * sizeof(float));
    assert_int_equal(elements_of(cuda->plan), elements_of(cpu->plan));
    weight = find_weight(cpu->plan, &gradient);
    assert_int_equal(weight->padding + gradient->padding, 0);
}

// ---- training

static void zeros_stay(void **state) {
    const example *of = *state;
    trial cpu, cuda;
    trained a, b;
    test_guard_set_seed(1);
    open_run(of, "device=cpu", NULL, "never", &cpu);
    open_run(of, "device=cuda", NULL, "never", &cuda);
    check_plan(&cpu, &cuda, of);
    int64_t gaps = check_all_gaps(&cuda);
    assert_true(gaps >= LINE - of->rows % LINE);
    trained_make(&cpu, STEPS, &a);
    trained_make(&cuda, STEPS, &b);
    assert_int_equal(check_all_gaps(&cuda), gaps);
    if (!of->half) {
        trained_assert_close(&a, &b, of->folder);
    }
    trained_free(&a);
    trained_free(&b);
    trial_close(&cpu);
    trial_close(&cuda);
}

// A checkpoint knows nothing of them: the other device goes on with the same bits.
static void checkpoints_have_none(void **state) {
    static const example run = {"goldens/gpt2", {"steps=10"}, 61, true, false};
    char out[600];
    snapshot saved, loaded;
    trial t;
    test_guard_set_seed(1);
    snprintf(out, sizeof out, "out=%s/out", (const char *)*state);
    const char *devices[] = {"device=cuda", "device=cpu", "device=cuda"};
    for (int i = 0; i < 3; i++) {
        tr_error err = {0};
        open_run(&run, devices[i], out, i > 0 ? "auto" : "never", &t);
        assert_int_equal(tr_engine_steps_done(t.engine), i);
        if (i > 0) {
            snapshot_take(&loaded, &t);
            snapshot_assert_same(&saved, &loaded);
            snapshot_free(&saved);
            snapshot_free(&loaded);
        }
        trial_steps(&t, 1, NULL);
        snapshot_take(&saved, &t);
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_close(&t);
    }
    snapshot_free(&saved);
}

// A thirty-second part of what the device has for a run, which is all but something, in
// whole powers of two.
static int64_t mib_of_device(void) {
    size_t bytes = 0;
    int64_t mib = 1024;
    assert_int_equal(tr__cuda_driver()->memory(&bytes), 0);
    while (mib * 32 >= (int64_t)(bytes >> 20)) {
        mib /= 2;
    }
    return mib;
}

// Chunks of any size, and logits of either type.
static void logits_are_as_asked(void **state) {
    static const example ways[] = {
        {"goldens/gpt2", {"bf16.enabled=true"}, 61, true, true},
        {"goldens/gpt2",
         {"bf16.enabled=true", "execution.f32_logits=true"},
         61,
         true,
         true},
        {"goldens/gpt2",
         {"bf16.enabled=true", "execution.logits_mib=2"},
         61,
         true,
         true},
    };
    tr_step_result results[3][STEPS];
    int64_t mib[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        trial t;
        test_guard_set_seed(0);
        open_run(&ways[i], "device=cuda", NULL, "never", &t);
        mib[i] = t.plan->request.logits_mib;
        assert_int_equal(t.plan->request.f32_logits, i == 1);
        trial_steps(&t, STEPS, results[i]);
        trial_close(&t);
    }
    assert_int_equal(mib[0], mib_of_device());
    assert_int_equal(mib[2], 2);
    assert_true(results[0][0].loss != results[1][0].loss);
    assert_true(results[0][0].loss / results[1][0].loss < 1.001);
    assert_true(results[1][0].loss / results[0][0].loss < 1.001);
    assert_true(results[2][0].loss == results[0][0].loss); // one chunk, too
}

#define ON(folder, rows, tied, half, ...)                                              \
    {                                                                                  \
        "zeros_stay: " folder, zeros_stay, NULL, NULL, &(example) {                    \
            folder, {__VA_ARGS__}, rows, tied, half                                    \
        }                                                                              \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        ON("goldens/gpt2", 61, true, false, "train_micro_batch_size_per_gpu=2"),
        ON("goldens/gpt2", 61, true, true, "bf16.enabled=true"),
        ON("goldens/gpt2", 61, true, true, "bf16.enabled=true",
           "data_types.grad_accum_dtype=bf16"),
        ON("goldens/gpt2", 61, true, false,
           "zero_optimization.offload_optimizer.device=cpu", "execution.wave=3"),
        ON("goldens/gpt2", 61, true, false, "execution.reproducible=true"),
        ON("goldens/qwen3", 37, true, false, "train_micro_batch_size_per_gpu=2"),
        ON("goldens/llama", 61, false, false, "train_micro_batch_size_per_gpu=2"),
        ON("goldens/llama", 61, false, true, "bf16.enabled=true"),
        ON("goldens/bert-masked", 150, true, true, "bf16.enabled=true"),
        cmocka_unit_test_setup_teardown(checkpoints_have_none, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(logits_are_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
