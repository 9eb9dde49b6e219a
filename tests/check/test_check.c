// A check finds that cuts of a right model agree, and a mistake that a cut shows.
#include "ops/nn/linear/linear.h"
#include "train/batch_mean.h"
#include "train/own_model.h"
#include "train/samples.h"
#include "train/trial.h"

#include <tranche/engine.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FEATURES = OWN_FEATURES, CLASSES = OWN_CLASSES };

// The mean over each micro-batch alone: what becomes of a batch statistic where
// somebody forgot about accumulation.
static tr_op micro_sum;

static void build_mistaken(tr_graph *graph, const void *config) {
    tr_value x = tr_graph_input(graph, 0);
    tr_value target = tr_graph_data(graph, "labels");
    tr_value sums[2] = {TR_NO_VALUE, TR_NO_VALUE};
    (void)config;
    tr_graph_op(graph, &micro_sum, NULL, (tr_value[]){x, target}, 2, sums);
    tr_graph_output(graph, tr_graph_op(graph, &test_op_without_mean, NULL,
                                       (tr_value[]){x, sums[0], sums[1]}, 3, NULL));
}

static void (*build)(tr_graph *graph, const void *config) = build_mistaken;

static const char own_run[] =
    "{\"train_batch_size\": 12, \"train_micro_batch_size_per_gpu\": 4, \"steps\": 5,"
    " %s \"seed\": 3, \"execution\": {\"threads\": 2}, \"out\": \"not-made\"}";

// precision: of the run, followed by a comma; "": f32.
static tr_check *check_in(const char *precision, bool mistaken, double tolerance) {
    char text[512];
    tr_error err = {0};
    tr_check *check = NULL;
    own_model own;
    samples s;
    own_model_make(&own, false, 0.1f);
    if (mistaken) {
        micro_sum = test_op_wave_sum;
        micro_sum.wave_outputs = 0;
        own.units[1] = (tr_model_unit){"middle", "mistaken", "middle.", build, NULL};
    }
    samples_features(&s, 40, FEATURES, CLASSES, 5);
    samples_mask(&s, 3, 6);
    snprintf(text, sizeof text, own_run, precision);
    run_options options = {
        .text = text, .own_model = &own.model, .own_train = s.dataset};
    trial_ok(trial_check(&options, tolerance, &check, &err), &err);
    samples_free(&s);
    return check;
}

static tr_check *check_own(bool mistaken, double tolerance) {
    return check_in("", mistaken, tolerance);
}

static const tr_check_cut *find_cut(const tr_check *check, const char *words) {
    for (size_t i = 0; i < check->cut_count; i++) {
        if (strstr(check->cuts[i].name, words)) {
            return &check->cuts[i];
        }
    }
    fail_msg("no cut of %s", words);
    return NULL;
}

static void test_right_model(void **state) {
    static const char *const all[] = {
        "as the run", "of 12", "of 1,",   "of 5",      "waves of 3", "all units",
        "no tensor",  "host",  "plain C", "reference", "in bf16",    "in fp16"};
    tr_check *check = check_own(false, 0);
    (void)state;
    assert_true(check->passed);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const tr_check_cut *cut = find_cut(check, all[i]);
        assert_string_equal(cut->skipped, "");
        assert_true(cut->passed);
        assert_true(cut->loss > 0);
    }
    // They were made: rounding shows where the order of additions differs.
    assert_true(find_cut(check, "of 5")->distance[find_cut(check, "of 5")->worst] > 0);
    assert_true(find_cut(check, "all units")->same_bits);
    for (size_t t = 0; t < check->tensor_count; t++) {
        assert_true(check->tensors[t].norm > 0);
        assert_true(find_cut(check, "all units")->distance[t] == 0);
    }
    tr_check_destroy(check);
}

static void test_mistake(void **state) {
    tr_check *check = check_own(true, 0);
    (void)state;
    assert_false(check->passed);
    const tr_check_cut *whole = find_cut(check, "of 12");
    assert_false(whole->passed);
    assert_true(whole->distance[whole->worst] > 1e-3);
    // What leaves the micro-batches as they are does not show it.
    assert_true(find_cut(check, "waves of 3")->passed);
    assert_true(find_cut(check, "all units")->passed);
    tr_check_destroy(check);
}

// In 16 bits each tensor has what rounding was measured to do to it. A scale that
// overflows is lowered.
static void test_half(void **state) {
    static const char *const runs[] = {
        "\"bf16\": {\"enabled\": true},",
        "\"fp16\": {\"enabled\": true, \"loss_scale\": 1e30},",
        "\"bf16\": {\"enabled\": true}, \"fp8\": {\"enabled\": true},"};
    (void)state;
    for (int f = 0; f < 3; f++) {
        tr_check *check = check_in(runs[f], false, 0);
        const tr_check_cut *whole = find_cut(check, "of 12");
        const tr_check_cut *full = find_cut(check, "in f32");
        assert_true(check->passed && full->passed);
        assert_true(isfinite(check->cuts[0].grad_norm));
        assert_true(full->distance[full->worst] > whole->distance[whole->worst]);
        assert_true(whole->tolerance == 0 && full->tolerance == 0);
        for (size_t t = 0; t < check->tensor_count; t++) {
            assert_true(whole->allowed[t] > 1e-4);
            assert_true(full->allowed[t] > 1e-4);
        }
        assert_true(find_cut(check, "all units")->same_bits);
        tr_check_destroy(check);
    }
}

// A linear layer, the gradient of whose weight is 5% too large in one cut alone: where
// a micro-batch has 12 samples.
static tr_op off_linear, off_backward;
static tr_kernel off_kernel;

static void launch_off(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    float *dweight = launch->out[0];
    tr__op_linear_backward_weight.reference->launch(desc, state, launch);
    for (int64_t i = 0; i < tr_shape_count(desc->out[0].shape); i++) {
        dweight[i] *= desc->in[0].shape.dim[0] == 12 ? 1.05f : 1;
    }
}

static int off_rules(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    int count = tr__op_linear.backward(node, rules);
    for (int i = 0; i < count; i++) {
        bool weight = rules[i].op == &tr__op_linear_backward_weight;
        rules[i].op = weight ? &off_backward : rules[i].op;
    }
    return count;
}

static void build_off(tr_graph *graph, const void *config) {
    static const tr_linear_attr attr = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE};
    tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    (void)config;
    tr_value x = tr_graph_input(graph, 0);
    tr_value w = tr_graph_param(graph, "off", TR_SHAPE2(16, 16), draw);
    tr_graph_output(graph, tr_graph_op(graph, &off_linear, &attr,
                                       (tr_value[]){x, w, TR_NO_VALUE}, 3, NULL));
}

static void test_half_mistake(void **state) {
    static const char *const runs[] = {
        "\"bf16\": {\"enabled\": true},", "\"fp16\": {\"enabled\": true},",
        "\"data_types\": {\"grad_accum_dtype\": \"bf16\"},"};
    (void)state;
    off_kernel = *tr__op_linear_backward_weight.reference;
    off_kernel.launch = launch_off;
    off_backward = tr__op_linear_backward_weight;
    off_backward.reference = &off_kernel;
    off_linear = tr__op_linear;
    off_linear.backward = off_rules;
    for (int f = 0; f < 3; f++) {
        build = build_off;
        tr_check *check = check_in(runs[f], true, 0);
        const tr_check_cut *whole = find_cut(check, "of 12");
        assert_false(whole->passed);
        assert_string_equal(check->tensors[whole->worst].name, "middle.off");
        assert_true(whole->allowed[whole->worst] < TR_CHECK_DECIDED);
        assert_true(find_cut(check, "of 1,")->passed);
        assert_true(find_cut(check, "plain C")->passed);
        tr_check_destroy(check);
    }
    build = build_mistaken;
}

// Sums of 16 bits are read as any other, and compared with those of f32.
static void test_half_sums(void **state) {
    static const char *const runs[] = {
        "\"data_types\": {\"grad_accum_dtype\": \"bf16\"},",
        "\"data_types\": {\"grad_accum_dtype\": \"fp16\"},"
        "\"bf16\": {\"enabled\": true},"};
    (void)state;
    for (int f = 0; f < 2; f++) {
        tr_check *check = check_in(runs[f], false, 0);
        const tr_check_cut *whole = find_cut(check, "of 12");
        const tr_check_cut *full = find_cut(check, "summed in f32");
        assert_true(check->passed);
        assert_true(whole->distance[whole->worst] > 1e-4);
        assert_true(full->distance[full->worst] > 1e-4);
        assert_string_equal(full->skipped, "");
        tr_check_destroy(check);
    }
}

// The tensor that is not finite is the worst, whichever come after it: here the first
// one's gradient, of a sample that fp16 cannot hold.
static void test_not_finite(void **state) {
    tr_error err = {0};
    tr_check *check = NULL;
    samples s;
    (void)state;
    samples_features(&s, 8, 6, 3, 5);
    samples_mask(&s, 3, 4);
    s.features[3 * 6] = 1e30f;
    run_options options = {
        .text = "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 8, 3]}, "
                "\"train_batch_size\": 8, \"steps\": 1}",
        .own_train = s.dataset};
    trial_ok(trial_check(&options, 0, &check, &err), &err);
    const tr_check_cut *cut = find_cut(check, "in fp16");
    assert_true(isfinite(check->cuts[0].grad_norm));
    assert_false(cut->passed);
    assert_string_equal(check->tensors[cut->worst].name, "layers.0.weight");
    assert_true(isnan(cut->distance[cut->worst]));
    tr_check_destroy(check);
    samples_free(&s);
}

static void test_tolerance(void **state) {
    tr_check *check = check_own(false, 1e-12);
    (void)state;
    assert_false(check->passed); // rounding is more than that
    assert_true(find_cut(check, "all units")->passed);
    tr_check_destroy(check);
}

// A key's bias adds the same to all logits of a query, so its true gradient is 0, and
// what is computed of it is rounding: another one in each cut.
static void test_zero_gradient(void **state) {
    tr_error err = {0};
    tr_check *check = NULL;
    size_t biases = 0;
    (void)state;
    assert_int_equal(chdir(TR_TEST_DATA "/goldens/bert-masked"), 0);
    run_options options = {.file = "run.json"};
    trial_ok(trial_check(&options, 0, &check, &err), &err);
    assert_true(check->passed);
    for (size_t t = 0; t < check->tensor_count; t++) {
        bool bias = strstr(check->tensors[t].name, "key.bias");
        biases += bias;
        assert_true(bias == (check->tensors[t].norm < 1e-6 * check->cuts[0].grad_norm));
    }
    assert_true(biases > 0);
    tr_check_destroy(check);
}

static void check_apart(const char *golden, const char *packing, bool made) {
    char folder[1024];
    tr_error err = {0};
    tr_check *check = NULL;
    snprintf(folder, sizeof folder, "%s/goldens/%s", TR_TEST_DATA, golden);
    assert_int_equal(chdir(folder), 0);
    run_options options = {.file = "run.json", .set = &packing, .set_count = 1};
    trial_ok(trial_check(&options, 0, &check, &err), &err);
    const tr_check_cut *cut = find_cut(check, "each packed document");
    assert_true(check->passed);
    assert_true(made == !cut->skipped[0]);
    assert_true(!made || cut->loss > 0);
    tr_check_destroy(check);
}

// A text's label goes with it; texts that a loss compares stay together.
static void test_texts_apart(void **state) {
    (void)state;
    check_apart("bert-class", "data.packing=true", true);
    check_apart("bert-set", "data.packing=true", true);
    check_apart("bert-pairs", "seed=1", false);
    check_apart("bert-next", "seed=1", false);
}

// A loss over the whole step has the same bits in one pass and in two.
static void test_passes(void **state) {
    static const char *const names[] = {"in two passes", "in one pass"};
    (void)state;
    assert_int_equal(chdir(TR_TEST_DATA "/goldens/bert-pairs"), 0);
    for (int i = 0; i < 2; i++) {
        const char *twice = i ? "contrastive.passes=2" : "contrastive.passes=1";
        tr_error err = {0};
        tr_check *check = NULL;
        run_options options = {.file = "run.json", .set = &twice, .set_count = 1};
        trial_ok(trial_check(&options, 0, &check, &err), &err);
        const tr_check_cut *cut = find_cut(check, names[i]);
        assert_true(check->passed && cut->same_bits && !cut->skipped[0]);
        tr_check_destroy(check);
    }
}

static void test_refusals(void **state) {
    tr_error err = {0};
    tr_check *check = NULL;
    own_model own;
    samples s;
    (void)state;
    own_model_make(&own, false, 0);
    samples_features(&s, 40, FEATURES, CLASSES, 5);
    run_options options = {.text = "{\"train_batch_size\": 4, \"steps\": 1, "
                                   "\"execution\": {\"reproducible\": true}}",
                           .own_model = &own.model,
                           .own_train = s.dataset};
    assert_int_equal(trial_check(&options, 0, &check, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "reproducible"));
    s.features[1] = NAN;
    err = (tr_error){0};
    options.text = "{\"train_batch_size\": 40, \"steps\": 1}";
    assert_int_equal(trial_check(&options, 0, &check, &err), TR_NUMBERS);
    samples_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_model),  cmocka_unit_test(test_mistake),
        cmocka_unit_test(test_passes),       cmocka_unit_test(test_half),
        cmocka_unit_test(test_half_sums),    cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_half_mistake), cmocka_unit_test(test_zero_gradient),
        cmocka_unit_test(test_texts_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
