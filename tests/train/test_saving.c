// A checkpoint in a folder of the caller's, with bytes of the caller's, and no out
// folder beside it.
#include "scratch.h"
#include "snapshot.h"

#include <tranche/checkpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 4]}, \"data\": "
    "{\"format\": \"random\", \"samples\": 40, \"features\": 6, \"classes\": 4}, "
    "\"train_batch_size\": 8, \"steps\": 6, \"seed\": 5, \"optimizer\": {\"type\": "
    "\"Adam\", \"params\": {\"lr\": 0.01}}}";

static const char note[] = "an epoch of mine\0and its end";

static void begin(trial *t, void **state, const char *resume) {
    run_options options = {
        .text = text, .out = scratch_path(state, "out"), .resume = resume};
    trial_open(t, &options);
}

static tr_status save(trial *t, const char *folder, const void *bytes, size_t count,
                      tr_error *err) {
    tr_save_options options = TR_SAVE_OPTIONS_INIT;
    options.folder = folder;
    options.bytes = bytes;
    options.byte_count = count;
    return tr_engine_save_as(t->engine, &options, err);
}

static void assert_bytes(const char *path, const void *wanted, size_t count) {
    void *bytes = NULL;
    size_t has = 1;
    tr_error err = {0};
    trial_ok(tr_checkpoint_bytes(path, &bytes, &has, &err), &err);
    assert_int_equal(has, count);
    if (wanted) {
        assert_memory_equal(bytes, wanted, count);
    } else {
        assert_null(bytes);
    }
    tr_checkpoint_bytes_release(bytes);
}

static void it_goes_on_from_there(void **state) {
    const char *mine = scratch_path(state, "deep/mine/");
    snapshot whole, resumed;
    tr_error err = {0};
    trial t;
    begin(&t, state, "never");
    trial_steps(&t, 3, NULL);
    trial_ok(save(&t, mine, note, sizeof note, &err), &err);
    assert_bytes(mine, note, sizeof note);
    trial_steps(&t, 3, NULL);
    snapshot_take(&whole, &t);
    trial_close(&t);
    assert_int_not_equal(access(scratch_path(state, "out"), F_OK), 0);

    begin(&t, state, mine);
    assert_int_equal(tr_engine_steps_done(t.engine), 3);
    trial_steps(&t, 3, NULL);
    snapshot_take(&resumed, &t);
    snapshot_assert_same(&whole, &resumed);
    // Again over the first one, and without bytes.
    trial_ok(save(&t, mine, NULL, 0, &err), &err);
    trial_close(&t);
    assert_bytes(mine, NULL, 0);
    begin(&t, state, mine);
    assert_int_equal(tr_engine_steps_done(t.engine), 6);
    trial_close(&t);
    assert_int_not_equal(access(scratch_path(state, "deep/mine.partial"), F_OK), 0);
    assert_int_not_equal(access(scratch_path(state, "deep/mine.replaced"), F_OK), 0);
    snapshot_free(&whole);
    snapshot_free(&resumed);
}

// The same files as in an out folder.
static void it_is_a_checkpoint_like_others(void **state) {
    const char *mine = scratch_path(state, "mine");
    tr_error err = {0};
    tr_diff *diff = NULL;
    trial t;
    begin(&t, state, "never");
    trial_steps(&t, 2, NULL);
    trial_ok(save(&t, mine, NULL, 0, &err), &err);
    trial_ok(save(&t, NULL, note, 5, &err), &err); // in the out folder
    trial_close(&t);
    assert_bytes(scratch_path(state, "out"), note, 5);
    trial_ok(tr_checkpoint_diff(mine, scratch_path(state, "out"), &diff, &err), &err);
    assert_true(diff->identical && diff->checkpoint_a && diff->checkpoint_b);
    tr_diff_destroy(diff);
}

// What a killed save has left beside the folder is no obstacle, and what was moved
// aside comes back.
static void leftovers_are_cleaned(void **state) {
    char left[512], aside[512];
    const char *mine = scratch_path(state, "mine");
    tr_error err = {0};
    trial t;
    begin(&t, state, "never");
    trial_steps(&t, 1, NULL);
    trial_ok(save(&t, mine, note, 4, &err), &err);
    snprintf(left, sizeof left, "%s", scratch_path(state, "mine.partial"));
    snprintf(aside, sizeof aside, "%s", scratch_path(state, "mine.replaced"));
    assert_int_equal(mkdir(left, 0700), 0);
    scratch_text(state, "mine.partial/model.safetensors", "half");
    assert_int_equal(rename(mine, aside), 0);
    trial_ok(save(&t, mine, note, 6, &err), &err);
    assert_bytes(mine, note, 6);
    assert_int_not_equal(access(left, F_OK), 0);
    assert_int_not_equal(access(aside, F_OK), 0);
    trial_close(&t);
}

static void wrong_ones_are_refused(void **state) {
    tr_save_options options = {.size = 3};
    tr_error size = {0}, null = {0}, bytes = {0}, taken = {0}, empty = {0}, lost = {0};
    void *read = NULL;
    size_t count = 0;
    trial t;
    begin(&t, state, "never");
    assert_int_equal(tr_engine_save_as(t.engine, &options, &size), TR_USAGE);
    assert_non_null(strstr(size.message, "TR_SAVE_OPTIONS_INIT"));
    assert_int_equal(tr_engine_save_as(t.engine, NULL, &null), TR_USAGE);
    assert_int_equal(save(&t, "x", NULL, 7, &bytes), TR_USAGE);
    assert_int_equal(save(&t, "", NULL, 0, &empty), TR_IO);
    assert_int_equal(mkdir(scratch_path(state, "folder"), 0700), 0);
    scratch_text(state, "folder/precious", "mine");
    assert_int_equal(save(&t, scratch_path(state, "folder"), NULL, 0, &taken), TR_IO);
    assert_non_null(strstr(taken.message, "not a checkpoint"));
    assert_int_equal(access(scratch_path(state, "folder/precious"), F_OK), 0);
    trial_steps(&t, 1, NULL); // the engine is as it was
    const char *mine = scratch_path(state, "mine");
    trial_ok(save(&t, mine, note, 9, &size), &size);
    scratch_text(state, "mine/caller.bin", "123456789");
    assert_int_equal(tr_checkpoint_bytes(mine, &read, &count, &lost), TR_IO);
    assert_non_null(strstr(lost.message, "damaged"));
    trial_close(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(it_goes_on_from_there),
        TEST(it_is_a_checkpoint_like_others),
        TEST(leftovers_are_cleaned),
        TEST(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
