// What a resumed run and several runs make of data: known by what is in the files, by
// how they are split, and by a batch that the data cannot fill.
#include "command.h"
#include "runs.h"

#include "base/hash.h"
#include "base/memory.h"
#include "files/checkpoint/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void train_two_steps(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "2")));
}

// Of the same size and name, and one byte of it is another.
static void test_edit_in_place(void **state) {
    size_t bytes = 0;
    train_two_steps(state);
    char *text = file_read(state, "text.txt", &bytes);
    text[bytes / 2] ^= 1;
    file_write(state, "text.txt", text, bytes);
    fail_with(state, NULL, LIST("train", "run.json"), 5,
              LIST("out/checkpoints/step-00000002: was trained on other data",
                   "content", "another \"out\" folder"));
    text[bytes / 2] ^= 1;
    file_write(state, "copy.txt", text, bytes); // content is what counts, not a name
    free(succeed(state, LIST("train", "run.json", "--data", "copy.txt")));
    free(text);
}

static void test_other_split(void **state) {
    train_two_steps(state);
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.validation=null"),
              5,
              LIST("was trained on this data with 19 samples set aside for validation, "
                   "and now there are 0",
                   "set data.validation as it was"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.validation=0.2"), 5,
              LIST("with 19 samples set aside", "and now there are 37"));
    // A validation file of its own takes nothing from training.
    file_words(state, "held.txt", 500);
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--steps", "1", "--set",
                             "data.validation=null")));
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--set",
                             "data.validation=[\"held.txt\"]")));
}

// Rewrites the checkpoint as an earlier version wrote it: its data by names and sizes.
static void write_earlier(void **state, uint64_t hash) {
    static const char name[] = "out/checkpoints/step-00000002/state.json";
    tr_state was;
    tr_manifest manifest;
    tr_error err = {0};
    char *text = NULL;
    assert_int_equal(tr__state_read(file_path(state, name), &was, &manifest, &err), 0);
    tr_state_numbers all = was.numbers;
    was.numbers.count = 0;
    for (int i = 0; i < all.count; i++) {
        if (strncmp(all.item[i].name, "data_", 5) != 0) {
            tr__state_numbers_set(&was.numbers, all.item[i].name, all.item[i].value);
        }
    }
    was.dataset_hash = hash;
    assert_int_equal(tr__state_encode(&was, &manifest, &text, &err), 0);
    file_text(state, name, text);
    tr__free(text);
}

// The hash of earlier versions, for text_run.
static uint64_t earlier_hash(int64_t bytes) {
    const int64_t numbers[] = {1, 16, 256, 0}; // width, n_positions, vocabulary, labels
    const int64_t split[] = {0, 19, 0, 0};     // the tail, its samples, seed, training
    uint64_t hash = tr__hash_more(0, "bytes", 5);
    hash = tr__hash_more(hash, numbers, sizeof numbers);
    hash = tr__hash_more(hash, "text.txt", 8);
    hash = tr__hash_more(hash, &bytes, sizeof bytes);
    return tr__hash_more(hash, split, sizeof split);
}

static void test_earlier_checkpoints(void **state) {
    train_two_steps(state);
    write_earlier(state, 12345);
    fail_with(state, NULL, LIST("train", "run.json"), 5,
              LIST("was trained on other data"));
    write_earlier(state, earlier_hash(3000));
    outcome o = run(state, LIST("train", "run.json", "--steps", "3"));
    assert_int_equal(o.status, 0);
    assert_says(
        o.err,
        "out/checkpoints/step-00000002: an earlier version wrote this checkpoint");
    assert_says(o.err, "(step 2)");
    outcome_free(&o);
    o = run(state, LIST("train", "run.json")); // said once
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "an earlier version"));
    outcome_free(&o);
}

static void test_drop_last(void **state) {
    run_file(state, classifier_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "data.drop_last=true", "--set",
                   "train_batch_size=21"),
              2,
              LIST("data.drop_last leaves out batches that are not full",
                   "the 20 training samples never fill one of 21",
                   "lower the batch to 20 or less"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "dataloader_drop_last=true", "--set",
                   "batch_schedule=[[1, 40]]"),
              2, LIST("never fill one of 40"));
    free(succeed(state, LIST("train", "run.json", "--set", "data.drop_last=true",
                             "--set", "train_batch_size=20")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_edit_in_place),
        TEST(test_other_split),
        TEST(test_earlier_checkpoints),
        TEST(test_drop_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
