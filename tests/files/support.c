#include "files/support.h"

#include "base/files.h"
#include "base/half.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const model_names[TEST_TENSORS] = {
    "transformer.wte.weight", "transformer.h.0.bias", "transformer.ln_f.weight"};
static const char *const optimizer_names[TEST_TENSORS] = {
    "transformer.wte.weight.exp_avg", "transformer.h.0.bias.exp_avg",
    "transformer.ln_f.weight.exp_avg"};
static const tr_shape shapes[TEST_TENSORS] = {
    {2, {8, 8, 0, 0}}, {1, {63, 0, 0, 0}}, {0, {0, 0, 0, 0}}};

bool test_in_shards;

float test_value(int64_t step, int tensor, int element) {
    return (float)step + 0.001f * (float)element - 100.0f * (float)tensor;
}

float test_stored(const tr_checkpoint_tensor *piece, int64_t i) {
    float value = ((const float *)piece->data)[i];
    return piece->stored == TR_BF16 ? tr__bf16_to_f32(tr__bf16_of_f32(value)) : value;
}

void test_run_fill(test_run *run, const char *out_folder, int64_t step, int keep) {
    memset(run, 0, sizeof *run);
    for (int t = 0; t < TEST_TENSORS; t++) {
        for (int i = 0; i < 64; i++) {
            run->model_data[t][i] = test_value(step, t, i);
            run->optimizer_data[t][i] = -test_value(step, t, i);
        }
        int64_t count = tr_shape_count(shapes[t]);
        run->model[t] = (tr_checkpoint_tensor){.name = model_names[t],
                                               .shape = shapes[t],
                                               .count = count,
                                               .data = run->model_data[t]};
        run->optimizer[t] = (tr_checkpoint_tensor){.name = optimizer_names[t],
                                                   .shape = shapes[t],
                                                   .count = count,
                                                   .data = run->optimizer_data[t]};
    }
    for (int t = 0; test_in_shards && t < TEST_TENSORS; t++) {
        run->model[t].stored = TR_BF16;
    }
    run->state = (tr_state){.step = step,
                            .update = step - 1,
                            .skipped = 1,
                            .cursor = 64 * step,
                            .seed = UINT64_MAX - 5,
                            .loss_scale = 65536.0};
    run->input = (tr_checkpoint_input){.out_folder = out_folder,
                                       .keep = keep,
                                       .state = &run->state,
                                       .config = "{\"model_type\": \"gpt2\"}\n",
                                       .model = run->model,
                                       .model_count = TEST_TENSORS,
                                       .shard_bytes = test_in_shards ? 1 : 0,
                                       .optimizer = run->optimizer,
                                       .optimizer_count = TEST_TENSORS};
}

static void check_set(const tr_tensor_set *set, const tr_checkpoint_tensor *tensors) {
    float read[64];
    assert_int_equal(tr__tensor_set_count(set), TEST_TENSORS);
    for (int t = 0; t < TEST_TENSORS; t++) {
        tr_error err = {0};
        const tr_stored_tensor *found = tr__tensor_set_find(set, tensors[t].name);
        assert_non_null(found);
        int64_t count = tr_shape_count(tensors[t].shape);
        assert_int_equal(found->count, count);
        test_ok(tr__tensor_read_f32(set, found, 0, count, read, &err), &err);
        for (int64_t i = 0; i < count; i++) {
            assert_true(read[i] == test_stored(&tensors[t], i));
        }
    }
}

void test_run_check(const char *folder, int64_t step) {
    tr_error err = {0};
    tr_checkpoint *checkpoint = NULL;
    test_run expected;
    test_run_fill(&expected, "", step, 0);
    test_ok(tr__checkpoint_open(folder, TR_VERIFY_HASHES, NULL, &checkpoint, &err),
            &err);
    assert_memory_equal(&checkpoint->state, &expected.state, sizeof expected.state);
    assert_string_equal(checkpoint->config, expected.input.config);
    check_set(checkpoint->model, expected.model);
    check_set(checkpoint->optimizer, expected.optimizer);
    tr__checkpoint_close(checkpoint);
}

int test_folder_make(void **state) {
    const char *base = getenv("TMPDIR");
    char *path = tr__format("%s/tranche-test-XXXXXX", base ? base : "/tmp");
    *state = path;
    return path && mkdtemp(path) ? 0 : -1;
}

int test_shards_make(void **state) {
    test_in_shards = true;
    return test_folder_make(state);
}

int test_folder_remove(void **state) {
    test_in_shards = false;
    tr_status status = tr__folder_remove(*state, NULL);
    tr__free(*state);
    return status == TR_OK ? 0 : -1;
}

void test_write(const char *path, const void *data, size_t bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(file >= 0);
    assert_int_equal(write(file, data, bytes), bytes);
    assert_int_equal(close(file), 0);
}

char *test_read(const char *path, size_t *bytes) {
    tr_error err = {0};
    char *text = NULL;
    test_ok(tr__file_read(path, 1 << 20, &text, bytes, &err), &err);
    return text;
}

const char *test_path(char *dst, const char *folder, const char *name) {
    tr_error err = {0};
    test_ok(tr__path_join(dst, PATH_MAX, folder, name, &err), &err);
    return dst;
}

void test_ok(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail_msg("status %d: %s", (int)status, err->message);
    }
}

void test_fails(tr_status status, const tr_error *err, tr_status expected,
                const char *words) {
    if (status != expected || !strstr(err->message, words)) {
        fail_msg("status %d, '%s'; expected %d with '%s'", (int)status, err->message,
                 (int)expected, words);
    }
}
