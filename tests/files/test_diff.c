// Differences of files made here, with known figures; what diff and inspect print.
#include "files/support.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/json.h"
#include "files/safetensors/tensor_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stored {
    tr_tensor_spec spec;
    const void *data;
} stored;

static void write_set(const char *path, const stored *tensors, size_t count) {
    tr_error err = {0};
    tr_tensor_spec specs[8];
    tr_tensor_writer *writer = NULL;
    int64_t bytes;
    uint64_t hash;
    for (size_t i = 0; i < count; i++) {
        specs[i] = tensors[i].spec;
    }
    test_ok(tr__tensor_writer_create(path, specs, count, &writer, &err), &err);
    for (size_t i = 0; i < count; i++) {
        test_ok(tr__tensor_writer_put(writer, i, 0, tr_shape_count(specs[i].shape),
                                      tensors[i].data, &err),
                &err);
    }
    test_ok(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err);
    tr__tensor_writer_destroy(writer);
}

static tr_diff *compare(const char *a, const char *b) {
    tr_error err = {0};
    tr_diff *diff = NULL;
    test_ok(tr_checkpoint_diff(a, b, &diff, &err), &err);
    return diff;
}

static const tr_diff_tensor *tensor_of(const tr_diff *diff, const char *name) {
    for (size_t i = 0; i < diff->count; i++) {
        if (strcmp(diff->tensors[i].name, name) == 0) {
            return &diff->tensors[i];
        }
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static const float first[4] = {1, -2, 0, 100}, second[4] = {1, -2.5, -0.0f, 101};
static const float odd[4] = {NAN, INFINITY, 3, 4}, even[4] = {NAN, 5, 3, 4.5};
static const uint16_t halves[2] = {0x3f80, 0xc000}; // bf16 1, -2

#define SHAPE_4                                                                        \
    {                                                                                  \
        1, {                                                                           \
            4, 0, 0, 0                                                                 \
        }                                                                              \
    }
#define SHAPE_2X2                                                                      \
    {                                                                                  \
        2, {                                                                           \
            2, 2, 0, 0                                                                 \
        }                                                                              \
    }
#define SHAPE_2                                                                        \
    {                                                                                  \
        1, {                                                                           \
            2, 0, 0, 0                                                                 \
        }                                                                              \
    }

static void make_pair(const char *folder, char *a, char *b) {
    const stored left[] = {{{"equal", TR_F32, SHAPE_4}, first},
                           {{"values", TR_F32, SHAPE_4}, first},
                           {{"strange", TR_F32, SHAPE_4}, odd},
                           {{"shape", TR_F32, SHAPE_4}, first},
                           {{"type", TR_F32, SHAPE_2}, first},
                           {{"here", TR_F32, SHAPE_2}, first},
                           {{"transformer.wte", TR_F32, SHAPE_4}, first}};
    const stored right[] = {
        {{"equal", TR_F32, SHAPE_4}, first},  {{"values", TR_F32, SHAPE_4}, second},
        {{"strange", TR_F32, SHAPE_4}, even}, {{"shape", TR_F32, SHAPE_2X2}, first},
        {{"type", TR_BF16, SHAPE_2}, halves}, {{"there", TR_F32, SHAPE_2}, first},
        {{"wte", TR_F32, SHAPE_4}, first}};
    write_set(test_path(a, folder, "a.safetensors"), left, 7);
    write_set(test_path(b, folder, "b.safetensors"), right, 7);
}

static void check_values(const tr_diff_tensor *tensor, int64_t different,
                         int64_t not_finite, double max_abs, double max_rel,
                         double l2) {
    assert_int_equal(tensor->different, different);
    assert_int_equal(tensor->not_finite, not_finite);
    assert_true(tensor->max_abs == max_abs);
    assert_true(tensor->max_rel == max_rel);
    assert_true(fabs(tensor->l2 - l2) < 1e-12);
}

static void figures(void **state) {
    char a[PATH_MAX], b[PATH_MAX];
    make_pair(*state, a, b);
    tr_diff *diff = compare(a, b);
    assert_int_equal(diff->count, 8);
    assert_int_equal(tensor_of(diff, "equal")->kind, TR_DIFF_SAME);
    check_values(tensor_of(diff, "equal"), 0, 0, 0, 0, 0);
    assert_true(fabs(tensor_of(diff, "equal")->l2_a - sqrt(10005)) < 1e-12);
    assert_int_equal(tensor_of(diff, "values")->kind, TR_DIFF_VALUES);
    check_values(tensor_of(diff, "values"), 3, 0, 1, 0.5 / 2.5, sqrt(1.25));
    assert_int_equal(tensor_of(diff, "strange")->kind, TR_DIFF_VALUES);
    check_values(tensor_of(diff, "strange"), 2, 1, 0.5, 0.5 / 4.5, 0.5);
    assert_int_equal(tensor_of(diff, "shape")->kind, TR_DIFF_SHAPE);
    assert_int_equal(tensor_of(diff, "type")->kind, TR_DIFF_DTYPE);
    check_values(tensor_of(diff, "type"), 0, 0, 0, 0, 0);
    assert_int_equal(tensor_of(diff, "here")->kind, TR_DIFF_ONLY_A);
    assert_int_equal(tensor_of(diff, "there")->kind, TR_DIFF_ONLY_B);
    assert_int_equal(tensor_of(diff, "transformer.wte")->kind, TR_DIFF_SAME);
    assert_false(diff->identical);
    assert_int_equal(diff->different_tensors, 6);
    assert_int_equal(diff->different, 5);
    assert_true(diff->max_abs == 1 && diff->max_rel == 0.5 / 2.5);
    tr_diff_destroy(diff);
}

// A difference in the last element of a tensor of several pieces.
static void in_pieces(void **state) {
    enum { COUNT = 300001 };
    char a[PATH_MAX], b[PATH_MAX];
    float *data = tr__calloc(COUNT, sizeof *data);
    stored tensor = {{"x", TR_F32, {1, {COUNT, 0, 0, 0}}}, data};
    for (int i = 0; i < COUNT; i++) {
        data[i] = 1;
    }
    write_set(test_path(a, *state, "a.safetensors"), &tensor, 1);
    data[0] = 3;
    data[COUNT - 1] = 2;
    write_set(test_path(b, *state, "b.safetensors"), &tensor, 1);
    tr_diff *diff = compare(a, b);
    check_values(&diff->tensors[0], 2, 0, 2, 2.0 / 3, sqrt(5));
    tr_diff_destroy(diff);
    diff = compare(b, b);
    assert_true(diff->identical);
    tr_diff_destroy(diff);
    tr__free(data);
}

static void save(test_run *run) {
    tr_error err = {0};
    test_ok(tr__folder_create(run->input.out_folder, &err), &err);
    test_ok(tr__checkpoint_save(&run->input, &err), &err);
}

static void checkpoints(void **state) {
    char a[PATH_MAX], b[PATH_MAX], model[PATH_MAX];
    test_run run;
    test_path(a, *state, "a");
    test_path(b, *state, "b");
    test_run_fill(&run, a, 7, 0);
    save(&run);
    run.input.out_folder = b;
    save(&run);
    tr_diff *diff = compare(a, b);
    assert_true(diff->identical && diff->optimizer_a && diff->optimizer_b);
    assert_int_equal(diff->count, 2 * TEST_TENSORS);
    tr_diff_destroy(diff);
    run.optimizer_data[1][62] = 5; // only the optimizer's state differs
    save(&run);
    diff = compare(a, b);
    assert_int_equal(diff->different, 1);
    assert_string_equal(tensor_of(diff, "transformer.h.0.bias.exp_avg")->file,
                        "optimizer");
    tr_diff_destroy(diff);
    diff = compare(a, test_path(model, b, "checkpoints/latest/model.safetensors"));
    assert_true(diff->identical && diff->optimizer_a && !diff->optimizer_b);
    tr_diff_destroy(diff);
}

static void has_state(const tr_diff *diff, const char *key, const char *a,
                      const char *b) {
    for (size_t i = 0; i < diff->state_count; i++) {
        if (strcmp(diff->states[i].key, key) == 0) {
            assert_string_equal(diff->states[i].a, a);
            assert_string_equal(diff->states[i].b, b);
            return;
        }
    }
    fail_msg("no difference of %s", key);
}

// Equal tensors of another step, seed or loss scale are another checkpoint; what the
// planner chose and what was measured does not count.
static void states(void **state) {
    char a[PATH_MAX], b[PATH_MAX], gone[PATH_MAX];
    test_run run;
    test_path(a, *state, "a");
    test_path(b, *state, "b");
    test_run_fill(&run, a, 7, 0);
    tr__state_numbers_set(&run.state.numbers, "planner.wave", 1);
    tr__state_numbers_set(&run.state.numbers, "noise_trace", 3);
    save(&run);
    run.input.out_folder = b;
    tr__state_numbers_set(&run.state.numbers, "planner.wave", 4);
    tr__state_numbers_set(&run.state.numbers, "noise_trace", 5);
    save(&run);
    tr_diff *diff = compare(a, b);
    assert_true(diff->identical && diff->checkpoint_a && diff->checkpoint_b);
    assert_int_equal(diff->state_count, 0);
    tr_diff_destroy(diff);
    run.state.seed = 3;
    run.state.loss_scale = 0.5;
    run.state.group_count = 1;
    run.state.beta_power[0][1] = 0.1;
    tr__state_numbers_set(&run.state.numbers, "guard_rate", 0.25);
    save(&run);
    diff = compare(a, b);
    assert_false(diff->identical);
    assert_int_equal(diff->different_tensors, 0);
    assert_int_equal(diff->state_count, 5);
    has_state(diff, "seed", "18446744073709551610", "3");
    has_state(diff, "loss_scale.scale", "65536", "0.5");
    has_state(diff, "numbers.guard_rate", "", "0.25");
    has_state(diff, "beta_powers[0][1]", "", "0.1");
    tr_diff_destroy(diff);
    // A checkpoint without its optimizer is not the same as one with it.
    run.input.out_folder = a;
    save(&run);
    test_path(gone, a, "checkpoints/step-00000007/optimizer.safetensors");
    assert_int_equal(remove(gone), 0);
    diff = compare(test_path(gone, a, "checkpoints/step-00000007"), b);
    assert_int_equal(diff->state_count, 0);
    assert_int_equal(diff->different_tensors, 0);
    assert_false(diff->identical);
    tr_diff_destroy(diff);
}

static void errors(void **state) {
    char a[PATH_MAX], b[PATH_MAX];
    tr_error err = {0};
    tr_diff *diff = NULL;
    make_pair(*state, a, b);
    test_fails(tr_checkpoint_diff(a, "/nowhere", &diff, &err), &err, TR_IO, "/nowhere");
    err = (tr_error){0};
    test_write(b, "x", 1);
    test_fails(tr_checkpoint_diff(a, b, &diff, &err), &err, TR_IO, "b.safetensors");
    assert_null(diff);
}

static bool take(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

// What was printed, as text; freed with free.
static char *printed(const tr_diff *diff, const tr_inspection *inspection, bool json) {
    char *text = NULL;
    size_t bytes;
    tr_error err = {0};
    const tr_sink to = {take, open_memstream(&text, &bytes)};
    assert_non_null(to.user);
    tr_status status = diff && json ? tr_diff_print_json(diff, &to, &err)
                       : diff       ? tr_diff_print(diff, &to, &err)
                       : json       ? tr_inspection_print_json(inspection, &to, &err)
                                    : tr_inspection_print(inspection, &to, &err);
    test_ok(status, &err);
    fclose(to.user);
    return text;
}

static void prints_diff(void **state) {
    static const char *const lines[] = {
        "values",
        "other shape",
        "other data type",
        "only in the first",
        "only in the second",
        "not finite 1",
        "6 of 8 tensors differ, 5 of 26 elements; max abs 1, max rel 0.2"};
    char a[PATH_MAX], b[PATH_MAX];
    make_pair(*state, a, b);
    tr_diff *diff = compare(a, b);
    char *text = printed(diff, NULL, false);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_non_null(strstr(text, lines[i]));
    }
    assert_null(strstr(text, "equal")); // only what differs
    free(text);
    text = printed(diff, NULL, true);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_false(json_object_get(root, "identical")));
    assert_int_equal(json_array_size(json_object_get(root, "tensors")), 8);
    assert_int_equal(json_integer_value(json_object_get(root, "different")), 5);
    assert_true(json_real_value(json_object_get(root, "max_abs")) == 1);
    json_decref(root);
    free(text);
    tr_diff_destroy(diff);
    diff = compare(a, a);
    text = printed(diff, NULL, false);
    assert_non_null(strstr(text, "bit-identical: 7 tensors, 24 elements"));
    free(text);
    tr_diff_destroy(diff);
}

static void prints_inspection(void **state) {
    test_run run;
    tr_error err = {0};
    tr_inspection *inspection = NULL;
    test_run_fill(&run, *state, 7, 0);
    save(&run);
    test_ok(tr_checkpoint_inspect(*state, &inspection, &err), &err);
    assert_int_equal(tr_inspection_count(inspection), TEST_TENSORS);
    assert_string_equal(tr_inspection_tensor(inspection, 0)->name,
                        "transformer.h.0.bias");
    assert_null(tr_inspection_tensor(inspection, TEST_TENSORS));
    char *text = printed(NULL, inspection, false);
    assert_non_null(strstr(text, "step 7, updates 6, skipped 1"));
    assert_non_null(strstr(text, "[8, 8]"));
    assert_non_null(strstr(text, "3 tensors, 128 elements, 512 B"));
    free(text);
    text = printed(NULL, inspection, true);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *saved = json_object_get(root, "state");
    assert_int_equal(json_integer_value(json_object_get(saved, "step")), 7);
    json_t *model = json_object_get(root, "model");
    assert_int_equal(json_integer_value(json_object_get(model, "bytes")), 512);
    assert_int_equal(json_object_size(json_object_get(root, "files")), 3);
    json_decref(root);
    free(text);
    tr_inspection_destroy(inspection);
    // plain weights
    test_ok(
        tr_checkpoint_inspect(TR_TEST_DATA "/safetensors/sharded", &inspection, &err),
        &err);
    text = printed(NULL, inspection, true);
    assert_non_null(strstr(text, "\"kind\": \"weights\""));
    free(text);
    tr_inspection_destroy(inspection);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(figures, test_folder_make, test_folder_remove),
        cmocka_unit_test_setup_teardown(in_pieces, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(states, test_folder_make, test_folder_remove),
        cmocka_unit_test_setup_teardown(checkpoints, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(errors, test_folder_make, test_folder_remove),
        cmocka_unit_test_setup_teardown(prints_diff, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(prints_inspection, test_folder_make,
                                        test_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
