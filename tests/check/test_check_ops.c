// A check tries the ops that are not the library's own, and says which one is wrong.
#include "ops/nn/relu/relu.h"
#include "train/own_model.h"
#include "train/samples.h"
#include "train/trial.h"

#include <tranche/engine.h>
#include <tranche/extend/op_check.h>

#include <math.h>
#include <string.h>

// ---- y = f(x) for each element, right or with a mistake

typedef enum mistake {
    NONE,
    SLOPE,     // the gradient is 5% too large
    READS_ON,  // y depends on the element behind x
    WRITES_ON, // writes one element behind dx
    LOGARITHM, // right, where x is above -1/2, as in the model behind a ReLU
    PICKY,     // right, and takes no batch of 3
    SHY,       // takes no batch of up to 4
    KINK,      // right: |x - its attribute|
} mistake;

enum { KINKS = 60 };

static mistake made;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    int64_t rows = node->in[0].shape.dim[0];
    if ((made == PICKY && rows == 3) || (made == SHY && rows >= 0 && rows <= 4)) {
        return tr_fail(err, TR_USAGE, "bend: not %lld rows", (long long)rows);
    }
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static float kink_of(const tr_op_desc *desc) {
    float kink;
    memcpy(&kink, desc->attr, sizeof kink);
    return kink;
}

static float value(const tr_op_desc *desc, float x) {
    return made == LOGARITHM ? logf(x + 0.5f)
           : made == KINK    ? fabsf(x - kink_of(desc))
                             : x * x;
}

static float slope(const tr_op_desc *desc, float x) {
    return made == LOGARITHM ? 1 / (x + 0.5f)
           : made == KINK    ? (x > kink_of(desc) ? 1 : -1)
           : made == SLOPE   ? 1.05f * 2 * x
                             : 2 * x;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const float *x = launch->in[0];
    float *y = launch->out[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        y[i] = value(desc, x[i]) + (made == READS_ON ? x[i + 1] : 0);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    const float *dy = launch->in[0], *x = launch->in[1];
    float *dx = launch->out[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (launch->accumulate & 1 ? dx[i] : 0) + slope(desc, x[i]) * dy[i];
    }
    if (made == WRITES_ON) {
        dx[count] = 1;
    }
}

static const tr_kernel kernel = {.name = "bend", .supports = is_f32, .launch = launch};
static const tr_kernel backward_kernel = {
    .name = "bend_backward", .supports = is_f32, .launch = launch_backward};
static const tr_op backward_op = {.name = "bend_backward",
                                  .attr_bytes = sizeof(float),
                                  .infer = infer,
                                  .reference = &backward_kernel};

static int rules(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &backward_op, .in = {TR_GRAD_OUT(0), TR_IN(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(float));
    return 1;
}

static const tr_op bend = {.name = "bend",
                           .attr_bytes = sizeof(float),
                           .infer = infer,
                           .backward = rules,
                           .reference = &kernel};

// ---- models with it

static const tr_op *the_op;

static void build_with_op(tr_graph *graph, const void *config) {
    tr_value x = tr_graph_input(graph, 0);
    (void)config;
    for (int i = 0; i < (made == KINK ? KINKS : 1); i++) {
        float kink = 0.02f * (float)i;
        x = tr_graph_op(graph, the_op, &kink, &x, 1, NULL);
    }
    tr_graph_output(graph, x);
}

static tr_check *check_with(const tr_op *op, mistake with) {
    tr_error err = {0};
    tr_check *check = NULL;
    own_model own;
    samples s;
    the_op = op;
    made = with;
    own_model_make(&own, false, 0);
    own.units[1] = (tr_model_unit){"middle", "bent", "middle.", build_with_op, NULL};
    samples_features(&s, 40, OWN_FEATURES, OWN_CLASSES, 5);
    run_options options = {
        .text = "{\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2, "
                "\"steps\": 1, \"bf16\": {\"enabled\": true}}",
        .own_model = &own.model,
        .own_train = s.dataset};
    trial_ok(trial_check(&options, 0, &check, &err), &err);
    samples_free(&s);
    made = NONE;
    return check;
}

static void test_right(void **state) {
    tr_check *check = check_with(&bend, NONE);
    (void)state;
    assert_int_equal(check->op_count, 1);
    assert_string_equal(check->ops[0].name, "bend");
    assert_string_equal(check->ops[0].kind, "bent");
    assert_true(check->ops[0].tried && check->ops[0].passed && check->passed);
    assert_true(check->cut_count > 5);
    tr_check_destroy(check);
}

// Finite differences are wrong next to a kink, where some of the drawn numbers lie:
// with one draw, of these ops some would be called wrong.
static void test_kinks(void **state) {
    tr_check *check = check_with(&bend, KINK);
    (void)state;
    assert_int_equal(check->op_count, KINKS);
    for (int i = 0; i < KINKS; i++) {
        assert_string_equal(check->ops[i].message, "");
    }
    tr_check_destroy(check);
}

static void test_library(void **state) {
    tr_check *check = check_with(&tr__op_relu, NONE);
    (void)state;
    assert_int_equal(check->op_count, 0);
    tr_check_destroy(check);
}

static bool take(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static void print(const tr_check *check, bool json, char *text, size_t bytes) {
    const tr_sink to = {take, fmemopen(text, bytes, "w")};
    tr_error err = {0};
    assert_non_null(to.user);
    trial_ok(json ? tr_check_print_json(check, &to, &err)
                  : tr_check_print(check, false, &to, &err),
             &err);
    fclose(to.user);
}

static void test_mistakes(void **state) {
    static const struct {
        mistake with;
        const char *says;
    } all[] = {{SLOPE, "bend: the gradient of input 0 is"},
               {READS_ON, "depends on what lies outside of the operands"},
               {WRITES_ON, "bend_backward writes outside of its result 0"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[4096] = "";
        tr_check *check = check_with(&bend, all[i].with);
        assert_false(check->passed);
        assert_true(check->ops[0].tried && !check->ops[0].passed);
        assert_non_null(strstr(check->ops[0].message, all[i].says));
        assert_int_equal(check->cut_count, 0);
        print(check, false, text, sizeof text);
        assert_non_null(strstr(text, "BAD op bend in bent"));
        assert_non_null(strstr(text, all[i].says));
        assert_non_null(strstr(text, "no cut was made"));
        print(check, true, text, sizeof text);
        assert_non_null(strstr(text, "\"name\": \"bend\""));
        tr_check_destroy(check);
    }
}

// Numbers and shapes that an op is not made for are no mistake of it.
static void test_domain(void **state) {
    tr_error err = {0};
    for (int m = LOGARITHM; m <= PICKY; m++) {
        tr_check *check = check_with(&bend, (mistake)m);
        assert_true(check->ops[0].tried && check->ops[0].passed && check->passed);
        tr_check_destroy(check);
    }
    const tr_op_check_input in = {.desc = {TR_F32, TR_SHAPE2(3, 5)}};
    (void)state;
    made = LOGARITHM;
    assert_int_equal(tr_op_check(&bend, NULL, &in, 1, 0, &err), TR_NUMBERS);
    assert_non_null(strstr(err.message, "bend: output 0 is not finite"));
    made = NONE;
}

// What cannot be tried is said, and is no mistake.
static void test_not_tried(void **state) {
    char text[4096] = "";
    tr_check *check = check_with(&bend, SHY);
    (void)state;
    assert_true(!check->ops[0].tried && check->passed);
    print(check, false, text, sizeof text);
    assert_non_null(strstr(text, "not tried: bend: not 1 rows"));
    tr_check_destroy(check);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),   cmocka_unit_test(test_kinks),
        cmocka_unit_test(test_library), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_domain),  cmocka_unit_test(test_not_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
