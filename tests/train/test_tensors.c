// Batches of several named tensors: a model gets each by its name, in whatever order
// the data set has them, and what does not match is said.
#include "samples.h"
#include "snapshot.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 3, RIGHT = 2, CLASSES = 4, SAMPLES = 13, STEPS = 3 };

static const char text[] =
    "{\"train_batch_size\": 5, \"train_micro_batch_size_per_gpu\": 2, \"steps\": 3, "
    "\"seed\": 3, \"optimizer\": {\"params\": {\"lr\": 0.01}}, \"out\": \"unused\"}";

// ---- the model: two products, of one input each

static tr_value product(tr_graph *g, const char *weight, const char *input,
                        int64_t width) {
    tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_value w = tr_graph_param(g, weight, TR_SHAPE2(CLASSES, width), draw);
    return tr_linear(g, TR_LINEAR_OUT_IN, tr_graph_data(g, input), w, TR_NO_VALUE);
}

static void build(tr_graph *g, const void *config) {
    tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    (void)config;
    tr_value left = product(g, "left", "left", LEFT);
    tr_value right = product(g, "right", "right", RIGHT);
    tr_value w = tr_graph_param(g, "out", TR_SHAPE2(CLASSES, CLASSES), draw);
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, tr_residual(g, left, right, 0), w,
                            TR_NO_VALUE, tr_graph_data(g, "labels"));
}

static void build_other(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, tr_graph_data(g, "middle"));
}

static const tr_model_unit units[] = {{"only", "only", "only.", build, NULL}};
static const tr_model_unit wrong_units[] = {{"other", "other", "", build_other, NULL}};

static const tr_model model = {
    .size = sizeof(tr_model),
    .type = "two",
    .unit_count = 1,
    .units = units,
    .batch = {3,
              {{"left", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(LEFT)}},
               {"right", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(RIGHT)}},
               {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}},
    .classes = CLASSES,
    .classifier = true,
};

// ---- the data: its values follow from a tensor's name and the sample

static tr_status read_named(void *user, const int64_t *index, int64_t count,
                            void *const *rows, tr_error *err) {
    const tr_batch_tensors *tensors = user;
    (void)err;
    for (int t = 0; t < tensors->count; t++) {
        const tr_batch_tensor *tensor = &tensors->tensor[t];
        int64_t width = tr_shape_count(tensor->desc.shape);
        for (int64_t i = 0; i < count * width; i++) {
            uint64_t seed = (uint64_t)(index[i / width] * 7 + i % width) +
                            (uint64_t)tensor->name[0] * 1000;
            double value = (double)(test_random(&seed) >> 11) * 0x1p-53;
            if (tensor->desc.dtype == TR_F32) {
                ((float *)rows[t])[i] = (float)value - 0.5f;
            } else {
                ((int32_t *)rows[t])[i] = (int32_t)(value * CLASSES);
            }
        }
    }
    return TR_OK;
}

static tr_dataset *data_of(const tr_batch_tensors *tensors) {
    tr_error err = {0};
    tr_dataset *data = NULL;
    tr_dataset_source source = {.size = sizeof(tr_dataset_source),
                                .about = "named",
                                .samples = SAMPLES,
                                .tensors = *tensors,
                                .classes = CLASSES,
                                .hash = 1,
                                .read = read_named,
                                .user = (void *)tensors};
    trial_ok(tr_dataset_create_callback(&source, &data, &err), &err);
    return data;
}

// ---- the tests

static double train(const tr_batch_tensors *tensors, snapshot *end) {
    tr_dataset *data = data_of(tensors);
    run_options options = {
        .text = text, .own_model = &model, .own_train = data, .resume = "never"};
    tr_step_result results[STEPS];
    trial t;
    trial_open(&t, &options);
    trial_steps(&t, STEPS, results);
    snapshot_take(end, &t);
    trial_close(&t);
    tr_dataset_destroy(data);
    return results[STEPS - 1].loss;
}

static void the_order_of_the_datas_tensors_does_not_matter(void **state) {
    (void)state;
    tr_batch_tensors turned = model.batch;
    turned.tensor[0] = model.batch.tensor[2];
    turned.tensor[1] = model.batch.tensor[0];
    turned.tensor[2] = model.batch.tensor[1];
    snapshot a, b;
    double first = train(&model.batch, &a), second = train(&turned, &b);
    assert_true(first > 0.5 && first < 3);
    assert_true(first == second);
    snapshot_assert_same(&a, &b);
    snapshot_free(&a);
    snapshot_free(&b);
}

static void refuse(const tr_batch_tensors *tensors, const char *const words[3]) {
    tr_dataset *data = data_of(tensors);
    run_options options = {
        .text = text, .own_model = &model, .own_train = data, .resume = "never"};
    tr_error err = {0};
    tr_run *run = NULL;
    assert_int_equal(run_open(&options, &run, &err), TR_DATA);
    for (int i = 0; i < 3; i++) {
        if (!strstr(err.message, words[i])) {
            fail_msg("\"%s\" does not say \"%s\"", err.message, words[i]);
        }
    }
    tr_dataset_destroy(data);
}

static void what_does_not_match_is_said_with_both_sides(void **state) {
    (void)state;
    tr_batch_tensors other = model.batch;
    memcpy(other.tensor[1].name, "middle", 7);
    refuse(&other, (const char *[]){"the model (two) takes the tensor right f32 [2]",
                                    "the data (named) does not have",
                                    "left f32 [3], middle f32 [2], labels i32 []"});
    other = model.batch;
    other.tensor[3] = other.tensor[1];
    memcpy(other.tensor[3].name, "middle", 7);
    other.count = 4;
    refuse(&other, (const char *[]){"the data (named) has the tensor middle f32 [2]",
                                    "the model (two) does not take",
                                    "left f32 [3], right f32 [2], labels i32 []"});
    other = model.batch;
    other.tensor[1].desc.dtype = TR_I32;
    refuse(&other, (const char *[]){"the data (named) has right i32 [2]",
                                    "the model (two) takes right f32 [2]", ""});
    other = model.batch;
    other.tensor[1].desc.shape = TR_SHAPE2(1, 2);
    refuse(&other, (const char *[]){"right f32 [1, 2]", "right f32 [2]", ""});
    other.tensor[1].desc.shape = TR_SHAPE1(9);
    refuse(&other, (const char *[]){"9 values a sample", "takes 2 in right",
                                    "the model's first layer"});
    other = model.batch;
    other.tensor[1] = (tr_batch_tensor){"labels", TR_ROLE_INPUT, {TR_I32, {0}}};
    other.tensor[2] = (tr_batch_tensor){"right", TR_ROLE_TARGET, {TR_I32, {0}}};
    refuse(&other,
           (const char *[]){"the tensor right has one role in the data", "", ""});
}

static void a_unit_asks_for_what_its_model_takes(void **state) {
    (void)state;
    tr_model wrong = model;
    wrong.units = wrong_units;
    tr_plan_request request = {.model = &wrong,
                               .train_batch_size = 2,
                               .micro_batch = 1,
                               .accumulation_steps = 2,
                               .mesh = tr_mesh_of_data(1, 0)};
    tr_plan *plan = NULL;
    tr_error err = {0};
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "the tensor middle of the batch"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_the_datas_tensors_does_not_matter),
        cmocka_unit_test(what_does_not_match_is_said_with_both_sides),
        cmocka_unit_test(a_unit_asks_for_what_its_model_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
