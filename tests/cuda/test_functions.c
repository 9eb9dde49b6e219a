// Functions of a program's that work on the device (tr_function.on_device), and a
// constant that is copied there: they get its memory and its stream, between the
// kernels before and behind them, at any pace.
#include "backend/cuda/driver.h"
#include "base/half.h"
#include "cuda/device.h"
#include "guard/guard.h"

#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

enum { FEATURES = 5, WIDTH = 4, MICRO = 3, STEPS = 3, TEXT_MAX = 512 };

static void copy(void *to, const void *from, int64_t bytes, void *stream) {
    if (stream) {
        assert_int_equal(tr__cuda_driver()->copy(to, from, (size_t)bytes, stream), 0);
    } else {
        memcpy(to, from, (size_t)bytes);
    }
}

static void wait_for(void *stream) {
    if (stream) {
        assert_int_equal(tr__cuda_driver()->stream_wait(stream), 0);
    }
}

// ---- y = x

static bool fails, reached;

static bool same_forward(void *user, const tr_function_call *call) {
    (void)user;
    reached = reached || call->stream;
    copy(call->output, call->input[0], tr_tensor_bytes(call->output_desc),
         call->stream);
    return !fails;
}

static bool same_backward(void *user, const tr_function_call *call) {
    (void)user;
    assert_int_equal(call->adds & 1, 0);
    copy(call->input_gradient[0], call->output_gradient,
         tr_tensor_bytes(call->output_desc), call->stream);
    return true;
}

// ---- the loss: half the squares of what is off from the label. What is copied to the
// host has to be there before it is looked at.

static float get(tr_dtype type, const void *from, int64_t at) {
    return type == TR_BF16 ? tr__bf16_to_f32(((const uint16_t *)from)[at])
                           : ((const float *)from)[at];
}

static void put(tr_dtype type, void *to, int64_t at, float value) {
    if (type == TR_BF16) {
        ((uint16_t *)to)[at] = tr__bf16_of_f32(value);
    } else {
        ((float *)to)[at] = value;
    }
}

static bool add_losses(const tr_function_call *call, void *dx) {
    const int32_t *labels = call->input[1]; // [B], the host's
    double *sums = call->output;            // likewise
    float x[MICRO], gradient[MICRO];        // [B, 1], of f32 or of 16 bits
    tr_dtype type = call->input_desc[0].dtype;
    int64_t rows = call->input_desc[0].shape.dim[0];
    int64_t bytes = tr_tensor_bytes(call->input_desc[0]);
    copy(x, call->input[0], bytes, call->stream);
    wait_for(call->stream);
    for (int64_t i = 0; i < rows; i++) {
        bool there = labels[i] >= 0;
        double off = there ? get(type, x, i) - (double)labels[i] : 0;
        sums[0] += off * off / 2;
        sums[1] += there;
        put(type, gradient, i, (float)off * call->loss_seed);
    }
    if (dx) {
        assert_int_equal(call->adds & 1, 0);
        assert_int_equal(call->input_gradient_dtype[0], type);
        copy(dx, gradient, bytes, call->stream);
        wait_for(call->stream); // `gradient` ends here
    }
    return true;
}

static bool loss_forward(void *user, const tr_function_call *call) {
    (void)user;
    return add_losses(call, NULL);
}

static bool loss_backward(void *user, const tr_function_call *call) {
    (void)user;
    return add_losses(call, call->input_gradient[0]);
}

// ---- the model

static tr_function same, loss;

static void make_functions(bool on_device) {
    fails = reached = false;
    same = (tr_function)TR_FUNCTION_INIT;
    same.name = "same";
    same.output = (tr_tensor_desc){TR_F32, TR_SHAPE2(TR_BATCH, WIDTH)};
    same.forward = same_forward;
    same.backward = same_backward;
    same.on_device = on_device;
    loss = (tr_function)TR_FUNCTION_INIT;
    loss.loss = true;
    loss.forward = loss_forward;
    loss.backward = loss_backward;
    loss.on_device = on_device;
}

static const tr_init drawn = {TR_INIT_UNIFORM, -0.5f, 0.5f};

static tr_value linear(tr_graph *g, tr_value x, int64_t out, int64_t in) {
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(out, in), drawn);
    return tr_graph_call(g, "linear", NULL, (tr_value[]){x, w}, 2, NULL, 0);
}

// A constant of each row; the rows are no power of two.
static const float shift[WIDTH] = {0.25f, -0.5f, 0.75f, 1};

static void build_hidden(tr_graph *g, const void *config) {
    (void)config;
    tr_value h = linear(g, tr_graph_data(g, "features"), WIDTH, FEATURES);
    h = tr_graph_function(g, &same, &h, 1);
    tr_value here = tr_graph_constant(
        g, (tr_tensor_desc){TR_F32, TR_SHAPE2(TR_BATCH, WIDTH)}, shift);
    tr_graph_output(
        g, tr_graph_call(g, "residual", NULL, (tr_value[]){h, here}, 2, NULL, 0));
}

static void build_head(tr_graph *g, const void *config) {
    (void)config;
    tr_value y = linear(g, tr_graph_input(g, 0), 1, WIDTH);
    tr_value labels = tr_graph_data(g, "labels");
    tr_graph_function(g, &loss, (tr_value[]){y, labels}, 2);
}

static const tr_model_unit units[] = {
    {.name = "hidden", .kind = "hidden", .prefix = "hidden.", .build = build_hidden},
    {.name = "head", .kind = "head", .prefix = "head.", .build = build_head},
};

// Borrows the model.
static tr_run *open_run(tr_model *model, const char *device, bool half) {
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_run *run = NULL;
    tr_error err = {0};
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": %d, "
             "\"classes\": 3}, \"steps\": 4, \"train_batch_size\": 7, \"out\": "
             "\"out\", \"train_micro_batch_size_per_gpu\": %d, \"device\": \"%s\", "
             "\"bf16\": {\"enabled\": %s}}",
             FEATURES, MICRO, device, half ? "true" : "false");
    *model = (tr_model)TR_MODEL_INIT;
    model->type = "functions";
    model->unit_count = 2;
    model->units = units;
    model->batch = tr_batch_features(FEATURES);
    model->classes = 3;
    parts.model = model;
    assert_int_equal(tr_run_create(&run, &err), TR_OK);
    assert_int_equal(tr_run_load_text(run, text, &err), TR_OK);
    assert_int_equal(tr_run_set(run, "resume", "never", &err), TR_OK);
    assert_int_equal(tr_run_give(run, &parts, &err), TR_OK);
    if (tr_run_resolve(run, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return run;
}

static void train(const char *device, bool half, double losses[STEPS],
                  float weight[WIDTH]) {
    tr_model model;
    tr_engine *engine = NULL;
    tr_error err = {0};
    make_functions(true);
    tr_run *run = open_run(&model, device, half);
    if (tr_engine_create(run, NULL, &engine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    for (int s = 0; s < STEPS; s++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        if (tr_engine_step(engine, &result, &err) != TR_OK) {
            fail_msg("%s", err.message);
        }
        losses[s] = result.loss;
    }
    assert_int_equal(
        tr_engine_read(engine, "head.weight", "values", 0, WIDTH, weight, &err), TR_OK);
    tr_engine_destroy(engine);
    tr_run_destroy(run);
}

static void compare(bool half, double within) {
    double cpu[STEPS], cuda[STEPS];
    float first[WIDTH], second[WIDTH];
    train("cpu", half, cpu, first);
    assert_false(reached);
    for (uint64_t seed = 0; seed < 4; seed++) {
        test_guard_set_seed(seed);
        train("cuda", half, cuda, second);
        assert_true(reached);
        for (int s = 0; s < STEPS; s++) {
            assert_true(fabs(cpu[s] - cuda[s]) <= within * cpu[s]);
        }
        for (int i = 0; i < WIDTH; i++) {
            assert_true(fabs((double)first[i] - (double)second[i]) <= within);
        }
    }
}

static void on_the_device_they_train_as_on_the_host(void **state) {
    (void)state;
    compare(false, 1e-5);
}

static void in_16_bits_they_train_beside_the_host(void **state) {
    (void)state;
    compare(true, 1e-2);
}

static void one_of_the_host_has_no_kernel_there(void **state) {
    tr_model model;
    tr_plan *plan = NULL;
    tr_error err = {0};
    (void)state;
    make_functions(false);
    tr_run *run = open_run(&model, "cuda", false);
    assert_int_equal(tr_run_make_plan(run, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "no kernel for op function"));
    assert_non_null(strstr(err.message, "\"device\" to \"cpu\""));
    tr_run_destroy(run);
}

static void one_that_fails_ends_the_step(void **state) {
    tr_model model;
    tr_engine *engine = NULL;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error err = {0};
    (void)state;
    test_guard_set_seed(0);
    make_functions(true);
    tr_run *run = open_run(&model, "cuda", false);
    assert_int_equal(tr_engine_create(run, NULL, &engine, &err), TR_OK);
    fails = true;
    assert_int_equal(tr_engine_step(engine, &result, &err), TR_DATA);
    assert_non_null(strstr(err.message, "hidden"));
    fails = false; // nothing has changed, and the step is made again
    assert_int_equal(tr_engine_step(engine, &result, &err), TR_OK);
    assert_int_equal(result.step, 1);
    tr_engine_destroy(engine);
    tr_run_destroy(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_device_they_train_as_on_the_host),
        cmocka_unit_test(in_16_bits_they_train_beside_the_host),
        cmocka_unit_test(one_of_the_host_has_no_kernel_there),
        cmocka_unit_test(one_that_fails_ends_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
