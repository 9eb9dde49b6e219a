// Folders of checkpoints: what is saved comes back, what is kept, what is found.
// Labels: check
#include "files/support.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/checkpoint/shards.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void save(const char *out, int64_t step, int keep) {
    tr_error err = {0};
    test_run run;
    test_run_fill(&run, out, step, keep);
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
}

// "12 14*": the steps there, the latest with a star, damaged ones with a '!'.
static void check_list(const char *out, const char *expected) {
    tr_error err = {0};
    tr_checkpoint_entry *entries;
    size_t count, end = 0;
    char text[256] = "";
    test_ok(tr_checkpoint_list(out, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        end +=
            (size_t)snprintf(text + end, sizeof text - end, "%s%lld%s%s", i ? " " : "",
                             (long long)entries[i].step, entries[i].latest ? "*" : "",
                             entries[i].complete ? "" : "!");
        assert_int_equal(entries[i].bytes > 0, entries[i].complete);
    }
    tr_checkpoint_list_destroy(entries, count);
    assert_string_equal(text, expected);
}

static void check_latest(const char *out, const char *name) {
    tr_error err = {0};
    char found[PATH_MAX], expected[PATH_MAX];
    test_ok(tr__checkpoint_find_latest(out, TR_VERIFY_HASHES, NULL, found, sizeof found,
                                       &err),
            &err);
    test_path(expected, out, name);
    assert_string_equal(found, *name ? expected : "");
}

static void round_trip(void **state) {
    char path[PATH_MAX];
    check_list(*state, "");
    check_latest(*state, "");
    save(*state, 100, 0);
    check_list(*state, "100*");
    check_latest(*state, "checkpoints/step-00000100");
    test_run_check(test_path(path, *state, "checkpoints/step-00000100"), 100);
    test_run_check(test_path(path, *state, "checkpoints/latest"), 100);
    save(*state, 123456789, 0); // more digits than the name's eight
    test_run_check(test_path(path, *state, "checkpoints/step-123456789"), 123456789);
    check_latest(*state, "checkpoints/step-123456789");
}

static void keeps(void **state) {
    char path[PATH_MAX];
    for (int64_t step = 1; step <= 5; step++) {
        save(*state, step, 3);
    }
    check_list(*state, "3 4 5*");
    // Resumed from an older one: what is newer is not ours to remove.
    save(*state, 4, 1);
    check_list(*state, "4* 5");
    test_run_check(test_path(path, *state, "checkpoints/step-00000004"), 4);
    save(*state, 6, 2);
    check_list(*state, "5 6*");
    save(*state, 7, 1);
    check_list(*state, "7*");
}

static void keep_words(void *user, tr_log_level level, const char *line) {
    char *words = user;
    (void)level;
    snprintf(words, 256, "%s", line);
}

// A run that began anew where another one had been: what that one left goes, but not
// before there is something in its place.
static void takes_over(void **state) {
    char path[PATH_MAX], words[256] = "";
    tr_error err = {0};
    const tr_log log = {keep_words, words};
    test_run run;
    for (int again = 0; again < 2; again++) { // the second time the same step is there
        save(*state, 3, 0);
        save(*state, 5, 0);
        save(*state, 9, 0);
        test_path(path, *state, "checkpoints/step-00000007"); // not ours
        test_ok(tr__folder_create(path, &err), &err);
        test_run_fill(&run, *state, 4, 2);
        run.input.anew = true;
        run.input.log = &log;
        run.input.out_folder = "/dev/null"; // fails
        assert_int_equal(tr__checkpoint_save(&run.input, &err), TR_IO);
        check_list(*state, again ? "3 4 5 7! 9*" : "3 5 7! 9*");
        run.input.out_folder = *state;
        err = (tr_error){0};
        test_ok(tr__checkpoint_save(&run.input, &err), &err);
        check_list(*state, "4* 7!");
        assert_string_equal(words, "removed 3 checkpoints of an earlier run");
    }
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(unlink(test_path(path, *state, "checkpoints/latest")), 0);
    check_latest(*state, "checkpoints/step-00000004");
}

static void leaves_strangers_alone(void **state) {
    static const char *const strangers[] = {
        "step-00000001", "step-1", "step-00000002.bak", "notes", "step-0000000a"};
    char folder[PATH_MAX], path[PATH_MAX];
    tr_error err = {0};
    test_path(folder, *state, "checkpoints");
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        test_path(path, folder, strangers[i]);
        test_ok(tr__folder_create(path, &err), &err);
    }
    test_ok(tr__checkpoint_clean(*state, &err), &err);
    save(*state, 8, 1);
    save(*state, 9, 1);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        assert_int_equal(access(test_path(path, folder, strangers[i]), F_OK), 0);
    }
    check_list(*state, "1! 9*");
    // and does not replace one
    test_run run;
    test_run_fill(&run, *state, 1, 1);
    test_fails(tr__checkpoint_save(&run.input, &err), &err, TR_IO, "needs this name");
    check_list(*state, "1! 9*");
}

static void same_step_again(void **state) {
    char path[PATH_MAX];
    test_run run;
    tr_error err = {0};
    save(*state, 5, 1);
    test_run_fill(&run, *state, 5, 1);
    run.model_data[0][0] = 42;
    run.state.update = 0;
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
    check_list(*state, "5*");
    tr_checkpoint *checkpoint;
    float value;
    test_ok(tr__checkpoint_open(test_path(path, *state, "checkpoints/latest"),
                                TR_VERIFY_HASHES, NULL, &checkpoint, &err),
            &err);
    test_ok(
        tr__tensor_read_f32(checkpoint->model,
                            tr__tensor_set_find(checkpoint->model, run.model[0].name),
                            0, 1, &value, &err),
        &err);
    assert_true(value == 42 && checkpoint->state.update == 0);
    tr__checkpoint_close(checkpoint);
}

static void cleans_up(void **state) {
    char folder[PATH_MAX], path[PATH_MAX], inner[PATH_MAX];
    tr_error err = {0};
    save(*state, 5, 0);
    test_path(folder, *state, "checkpoints");
    test_ok(tr__folder_create(test_path(path, folder, "step-00000006.partial"), &err),
            &err);
    test_write(test_path(inner, path, "model.safetensors"), "x", 1);
    assert_int_equal(symlink("step-00000006", test_path(inner, folder, "latest.new")),
                     0);
    check_latest(*state, "checkpoints/step-00000005");
    test_ok(tr__checkpoint_clean(*state, &err), &err);
    assert_int_equal(access(path, F_OK), -1);
    struct stat info;
    assert_int_equal(lstat(inner, &info), -1);
    // Killed while a step was saved again: the one that stepped aside is found, and
    // moved back.
    char plain[PATH_MAX], aside[PATH_MAX];
    test_path(plain, folder, "step-00000005");
    test_path(aside, folder, "step-00000005.replaced");
    assert_int_equal(rename(plain, aside), 0);
    check_latest(*state, "checkpoints/step-00000005.replaced");
    test_run_check(aside, 5);
    test_ok(tr__checkpoint_clean(*state, &err), &err);
    check_list(*state, "5*");
    check_latest(*state, "checkpoints/step-00000005");
}

static void links(void **state) {
    char link[PATH_MAX];
    test_path(link, *state, "checkpoints/latest");
    save(*state, 1, 0);
    save(*state, 2, 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("step-00000001", link), 0);
    check_latest(*state, "checkpoints/step-00000001");
    static const char *const useless[] = {"step-00000009", "/etc", "..", "nowhere"};
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
        assert_int_equal(unlink(link), 0);
        assert_int_equal(symlink(useless[i], link), 0);
        check_latest(*state, "checkpoints/step-00000002");
    }
}

// Damages one file of step 2 in turn: the error names it and the good one before.
static void damage(void **state) {
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "optimizer.safetensors", "state.json"};
    char path[PATH_MAX], found[PATH_MAX];
    save(*state, 1, 0);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        for (int how = 0; how < 3; how++) { // missing, short, one bit
            size_t bytes;
            tr_error err = {0};
            save(*state, 2, 0);
            test_path(found, *state, "checkpoints/step-00000002");
            test_path(path, found, files[f]);
            char *text = test_read(path, &bytes);
            if (how == 0) {
                assert_int_equal(unlink(path), 0);
            } else if (how == 1) {
                test_write(path, text, bytes - 2);
            } else {
                text[bytes / 2] ^= 1;
                test_write(path, text, bytes);
            }
            test_fails(tr__checkpoint_find_latest(*state, TR_VERIFY_HASHES, NULL, found,
                                                  sizeof found, &err),
                       &err, TR_IO, files[f]);
            assert_non_null(strstr(err.message, "checkpoints/step-00000001"));
            assert_string_equal(found, "");
            if (how == 0) { // makes room for the next one
                test_write(path, text, bytes);
            }
            tr__free(text);
        }
    }
}

static void only_one_and_damaged(void **state) {
    char path[PATH_MAX], found[PATH_MAX];
    tr_error err = {0};
    save(*state, 1, 0);
    assert_int_equal(
        unlink(test_path(path, *state, "checkpoints/latest/model.safetensors")), 0);
    test_fails(tr__checkpoint_find_latest(*state, TR_VERIFY_SIZES, NULL, found,
                                          sizeof found, &err),
               &err, TR_IO, "no good one is before it");
    check_list(*state, "1*!");
}

static void locates(void **state) {
    char out[PATH_MAX], path[PATH_MAX], found[PATH_MAX];
    tr_error err = {0};
    test_fails(tr_checkpoint_locate(*state, found, sizeof found, &err), &err, TR_IO,
               "no model.safetensors");
    test_path(out, *state, "run");
    test_ok(tr__folder_create(out, &(tr_error){0}), &err);
    save(out, 3, 0);
    err = (tr_error){0};
    test_ok(tr_checkpoint_locate(out, found, sizeof found, &err), &err);
    assert_string_equal(found, test_path(path, out, "checkpoints/step-00000003"));
    test_ok(tr_checkpoint_locate(path, found, sizeof found, &err), &err);
    assert_string_equal(found, path);
    test_fails(tr_checkpoint_locate("/nowhere", found, sizeof found, &err), &err, TR_IO,
               "no such file");
}

typedef struct seen {
    int64_t calls, done, total;
} seen;

static void see(void *user, int64_t done, int64_t total) {
    seen *s = user;
    assert_true(done >= s->done && done <= total);
    *s = (seen){s->calls + 1, done, total};
}

static void reports_progress(void **state) {
    test_run run;
    tr_error err = {0};
    seen s = {0};
    char path[PATH_MAX];
    test_run_fill(&run, *state, 1, 0);
    run.input.progress = (tr_progress){see, &s};
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
    assert_int_equal(s.done, 2 * 4 * (64 + 63 + 1));
    assert_int_equal(s.done, s.total);
    assert_true(s.calls >= 2 * TEST_TENSORS);
    s = (seen){0};
    test_ok(tr__checkpoint_verify(test_path(path, *state, "checkpoints/latest"),
                                  TR_VERIFY_HASHES, &run.input.progress, NULL, NULL,
                                  &err),
            &err);
    assert_int_equal(s.done, s.total);
    assert_int_equal(s.calls, 3);
}

// A tensor may come in several pieces, in any order among the others: the files are
// those of whole tensors.
static void pieces_make_up_a_tensor(void **state) {
    tr_error err = {0};
    test_run run;
    seen s = {0};
    char path[PATH_MAX];
    tr_checkpoint_tensor pieces[TEST_TENSORS + 2];
    test_run_fill(&run, *state, 100, 0);
    const tr_checkpoint_tensor *whole = &run.model[0]; // 64 elements
    pieces[0] = pieces[2] = pieces[4] = *whole;
    pieces[1] = run.model[1];
    pieces[3] = run.model[2];
    const int64_t cuts[][2] = {{40, 24}, {0, 1}, {1, 39}};
    for (int p = 0; p < 3; p++) {
        pieces[2 * p].first = cuts[p][0];
        pieces[2 * p].count = cuts[p][1];
        pieces[2 * p].data = (const float *)whole->data + cuts[p][0];
    }
    run.input.model = pieces;
    run.input.model_count = TEST_TENSORS + 2;
    run.input.progress = (tr_progress){see, &s};
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
    assert_int_equal(s.done, s.total);
    test_run_check(test_path(path, *state, "checkpoints/step-00000100"), 100);
    s = (seen){0};
    pieces[4].count--; // an element is missing
    run.state.step = 101;
    assert_int_equal(tr__checkpoint_save(&run.input, &err), TR_INTERNAL);
    check_list(*state, "100*");
}

static int64_t size_of(const char *folder, const char *name) {
    char path[PATH_MAX];
    struct stat info;
    return stat(test_path(path, folder, name), &info) == 0 ? info.st_size : -1;
}

// Which file the index of the latest checkpoint has a tensor in.
static const char *file_of(const json_t *index, const char *tensor) {
    return json_string_value(
        json_object_get(json_object_get(index, "weight_map"), tensor));
}

// A file has whole tensors, in their order, as long as they fit.
static void shards(void **state) {
    char path[PATH_MAX], folder[PATH_MAX];
    test_run run;
    tr_error err = {0};
    size_t bytes;
    test_run_fill(&run, *state, 7, 0);
    run.input.shard_bytes = 1100; // the first of 256 bytes, and the second of 252
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
    test_path(folder, *state, "checkpoints/step-00000007");
    test_run_check(folder, 7);
    assert_true(size_of(folder, "model.safetensors") < 0);
    int64_t first = size_of(folder, "model-00001-of-00002.safetensors");
    assert_true(first > 256 + 252 && first <= 1100);
    assert_true(size_of(folder, "model-00002-of-00002.safetensors") > 4);
    char *text =
        test_read(test_path(path, folder, "model.safetensors.index.json"), &bytes);
    json_t *index = json_loads(text, 0, NULL);
    const json_t *metadata = json_object_get(index, "metadata");
    assert_int_equal(json_integer_value(json_object_get(metadata, "total_size")),
                     4 * (64 + 63 + 1));
    assert_string_equal(file_of(index, run.model[1].name),
                        "model-00001-of-00002.safetensors");
    assert_string_equal(file_of(index, run.model[2].name),
                        "model-00002-of-00002.safetensors");
    json_decref(index);
    tr__free(text);
    // A damaged or missing one is found.
    test_path(path, folder, "model-00002-of-00002.safetensors");
    assert_int_equal(unlink(path), 0);
    check_list(*state, "7*!");
}

// The optimizer's states are cut as the weights are, with an index of their own.
static void state_shards(void **state) {
    char path[PATH_MAX], folder[PATH_MAX];
    test_run run;
    tr_error err = {0};
    size_t bytes;
    test_run_fill(&run, *state, 7, 0);
    run.input.shard_bytes = 600;
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
    test_path(folder, *state, "checkpoints/step-00000007");
    test_run_check(folder, 7);
    assert_true(size_of(folder, "optimizer.safetensors") < 0);
    char *text =
        test_read(test_path(path, folder, "optimizer.safetensors.index.json"), &bytes);
    json_t *index = json_loads(text, 0, NULL);
    tr__free(text);
    assert_int_equal(json_object_size(json_object_get(index, "weight_map")),
                     run.input.optimizer_count);
    for (size_t i = 0; i < run.input.optimizer_count; i++) {
        const char *file = file_of(index, run.input.optimizer[i].name);
        assert_true(strncmp(file, "optimizer-0000", 14) == 0);
        int64_t size = size_of(folder, file);
        assert_true(size > 0 && size <= 600);
        test_path(path, folder, file);
    }
    json_decref(index);
    assert_int_equal(unlink(path), 0);
    check_list(*state, "7*!");
}

static void one_shard_is_one_file(void **state) {
    char path[PATH_MAX];
    test_run run;
    tr_error err = {0};
    test_run_fill(&run, *state, 7, 0);
    run.input.shard_bytes = 1 << 20;
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
    test_path(path, *state, "checkpoints/latest");
    test_run_check(path, 7);
    assert_true(size_of(path, "model.safetensors") > 0);
    assert_true(size_of(path, "model.safetensors.index.json") < 0);
}

// One more than there may be; with what the message says, it works.
static void too_many_shards(void **state) {
    enum { MANY = TR_SHARDS_MAX + 1 };
    static char names[MANY][16];
    static tr_checkpoint_tensor tensors[MANY];
    tr_shards cut;
    tr_error err = {0};
    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "w%d", i);
        tensors[i] = (tr_checkpoint_tensor){
            .name = names[i], .shape = {1, {100, 0, 0, 0}}, .count = 100};
    }
    tr_shards_input input = {TR_FILES_MODEL, tensors, MANY - 1, 1};
    test_ok(tr__shards_cut(&input, &cut, &err), &err);
    assert_int_equal(cut.count, TR_SHARDS_MAX);
    tr__shards_free(&cut);
    input.count = MANY;
    input.files = TR_FILES_OPTIMIZER;
    test_fails(tr__shards_cut(&input, &cut, &err), &err, TR_USAGE,
               "201 files of the optimizer's states");
    input.files = TR_FILES_MODEL;
    err = (tr_error){0};
    test_fails(tr__shards_cut(&input, &cut, &err), &err, TR_USAGE,
               "201 files of weights");
    input.shard_bytes = strtoll(strstr(err.message, "with ") + 5, NULL, 10);
    test_ok(tr__shards_cut(&input, &cut, &err), &err);
    assert_true(cut.count > 1 && cut.count <= TR_SHARDS_MAX);
    tr__shards_free(&cut);
}

int main(void) {
    void (*const all[])(void **) = {round_trip,
                                    keeps,
                                    takes_over,
                                    leaves_strangers_alone,
                                    same_step_again,
                                    cleans_up,
                                    links,
                                    damage,
                                    only_one_and_damaged,
                                    locates,
                                    reports_progress,
                                    pieces_make_up_a_tensor,
                                    shards,
                                    state_shards,
                                    one_shard_is_one_file,
                                    too_many_shards};
    static const char *const names[] = {"round_trip",
                                        "keeps",
                                        "takes_over",
                                        "leaves_strangers_alone",
                                        "same_step_again",
                                        "cleans_up",
                                        "links",
                                        "damage",
                                        "only_one_and_damaged",
                                        "locates",
                                        "reports_progress",
                                        "pieces_make_up_a_tensor",
                                        "shards",
                                        "state_shards",
                                        "one_shard_is_one_file",
                                        "too_many_shards"};
    struct CMUnitTest tests[sizeof all / sizeof *all];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tests[i] = (struct CMUnitTest){names[i], all[i], test_folder_make,
                                       test_folder_remove, NULL};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
