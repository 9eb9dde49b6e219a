// Folders that DeepSpeed saved (tools/goldens/deepspeed_folders.py): the same training
// by each stage of ZeRO, and damage. tests/python/test_from_deepspeed.py goes on from
// them.
#include "files/support.h"

#include "base/files.h"
#include "base/memory.h"
#include "draws.h"
#include "files/deepspeed/deepspeed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STAGES = 4, MOST = 64 };

static bool is_trained(const void *user, const char *name) {
    return strcmp(name, user) != 0;
}

static tr_status open_stage(int stage, tr_deepspeed *saved, tr_error *err) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, TR_TEST_DATA "/deepspeed/stage%d/global_step3",
             stage);
    return tr__deepspeed_open(folder, true, is_trained, "layers.0.bias", saved, err);
}

static int64_t read(const tr_tensor_set *set, const char *name, float *values) {
    tr_error err = {0};
    const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
    assert_non_null(tensor);
    assert_true(tensor->count <= MOST);
    test_ok(tr__tensor_read_f32(set, tensor, 0, tensor->count, values, &err), &err);
    for (int64_t i = 0; i < tensor->count; i++) { // and each by itself
        float value = 0;
        test_ok(tr__tensor_read_f32(set, tensor, i, 1, &value, &err), &err);
        assert_true(value == values[i]);
    }
    return tensor->count;
}

static void stages_have_the_same(void **state) {
    tr_deepspeed saved[STAGES] = {0};
    float wanted[MOST], found[MOST];
    (void)state;
    for (int stage = 0; stage < STAGES; stage++) {
        tr_error err = {0};
        test_ok(open_stage(stage, &saved[stage], &err), &err);
        assert_int_equal(saved[stage].stage, stage);
        assert_int_equal(saved[stage].updates, 3);
        assert_int_equal(saved[stage].skipped, 0);
        assert_int_equal(saved[stage].samples, 24);
        assert_int_equal(saved[stage].states, 2);
        assert_string_equal(saved[stage].state[0], "exp_avg");
        assert_string_equal(saved[stage].state[1], "exp_avg_sq");
        assert_int_equal(json_object_size(saved[stage].trained), 3);
        const tr_tensor_set *set = saved[stage].tensors;
        assert_int_equal(tr__tensor_set_count(set), 4 + 2 * 3);
        for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
            const char *name = tr__tensor_set_at(set, i)->name;
            int64_t count = read(saved[0].tensors, name, wanted);
            assert_int_equal(read(set, name, found), count);
            for (int64_t k = 0; k < count; k++) {
                assert_true(fabsf(found[k] - wanted[k]) < 1e-6f);
                assert_true(wanted[k] != 0);
            }
        }
    }
    for (int stage = 0; stage < STAGES; stage++) {
        tr__deepspeed_close(&saved[stage]);
    }
}

static void a_step_is_found(void **state) {
    char found[PATH_MAX], file[PATH_MAX];
    tr_error err = {0};
    test_ok(tr__deepspeed_locate(TR_TEST_DATA "/deepspeed/stage1", found, &err), &err);
    assert_string_equal(found, TR_TEST_DATA "/deepspeed/stage1/global_step3");
    test_ok(tr__deepspeed_locate(found, file, &err), &err);
    assert_string_equal(file, found);
    test_ok(tr__deepspeed_locate(TR_TEST_DATA "/torch", found, &err), &err);
    assert_string_equal(found, "");
    test_ok(tr__deepspeed_locate(*state, found, &err), &err);
    assert_string_equal(found, "");
}

// ---- damage

static const char *const names[] = {
    "zero_pp_rank_0_mp_rank_00_model_states.pt",
    "zero_pp_rank_1_mp_rank_00_model_states.pt",
    "zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "zero_pp_rank_1_mp_rank_00_optim_states.pt",
    "mp_rank_00_model_states.pt",
};
enum { NAMES = sizeof names / sizeof *names };

// Copies what the stage has of these files.
static void copy(int stage, const char *folder) {
    char from[PATH_MAX], to[PATH_MAX];
    for (int i = 0; i < NAMES; i++) {
        size_t bytes = 0;
        char *data = NULL;
        snprintf(from, sizeof from, TR_TEST_DATA "/deepspeed/stage%d/global_step3/%s",
                 stage, names[i]);
        if (tr__file_read(from, 1 << 20, &data, &bytes, NULL) == TR_OK) {
            test_write(test_path(to, folder, names[i]), data, bytes);
        }
        tr__free(data);
    }
}

// What is changed in a file unseen is an error or not, and is never read outside of it.
static void spoil(const char *folder, const char *name) {
    char path[PATH_MAX];
    size_t bytes = 0, stride = TEST_DRAWS(3, 17);
    float values[MOST];
    test_path(path, folder, name);
    char *data = test_read(path, &bytes);
    for (size_t at = 0; at < bytes; at += stride) {
        tr_error err = {0};
        tr_deepspeed saved = {0};
        char was = data[at];
        data[at] ^= (char)(1 + at % 127);
        test_write(path, data, bytes);
        tr_status status = tr__deepspeed_open(folder, false, is_trained,
                                              "layers.0.bias", &saved, &err);
        assert_true(status == TR_OK || status == TR_IO);
        for (size_t i = 0; status == TR_OK && i < tr__tensor_set_count(saved.tensors);
             i++) {
            const tr_stored_tensor *tensor = tr__tensor_set_at(saved.tensors, i);
            int64_t count = tensor->count < MOST ? tensor->count : MOST;
            tr_error why = {0};
            tr__tensor_read_f32(saved.tensors, tensor, tensor->count - count, count,
                                values, &why);
        }
        tr__deepspeed_close(&saved);
        data[at] = was;
    }
    test_write(path, data, bytes);
    tr__free(data);
}

static void no_byte_does_harm(void **state) {
    copy(3, *state);
    spoil(*state, names[0]);
    spoil(*state, names[3]);
}

static void nor_without_ranks(void **state) {
    copy(0, *state);
    spoil(*state, names[4]);
}

static void nor_of_other_stages(void **state) {
    copy(1, *state);
    spoil(*state, names[2]);
    spoil(*state, names[4]);
}

static void no_memory_is_told(void **state) {
    (void)state;
    for (int stage = 0; stage < STAGES; stage++) {
        tr_status status = TR_MEMORY;
        for (int64_t nth = 1; status != TR_OK; nth++) {
            tr_error err = {0};
            tr_deepspeed saved = {0};
            tr__memory_fail_at(nth);
            status = open_stage(stage, &saved, &err);
            tr__memory_fail_at(0);
            assert_true(status == TR_OK || status == TR_MEMORY);
            assert_true(nth < 20000);
            tr__deepspeed_close(&saved);
        }
    }
}

#define FOLDER_TEST(name)                                                              \
    cmocka_unit_test_setup_teardown(name, test_folder_make, test_folder_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_have_the_same), FOLDER_TEST(a_step_is_found),
        FOLDER_TEST(no_byte_does_harm),         FOLDER_TEST(nor_without_ranks),
        FOLDER_TEST(nor_of_other_stages),       cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
