// The file that keeps the ids of a text: used while nothing has changed, made anew
// where something has, and never trusted.
#include "data/scratch.h"

#include "data/sources/dataset.h"
#include "data/text/text_cache.h"

#include "base/files.h"
#include "base/memory.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define GPT2 TR_TEST_DATA "/tokenizers/gpt2.json"

enum { SPOILT = 150 };

static int own_cache(void **state) {
    char folder[SCRATCH_PATH_MAX];
    if (scratch_make(state) != 0) {
        return 1;
    }
    return setenv("XDG_CACHE_HOME", scratch_path(folder, state, "cache"), 1);
}

// What is told of a run: how often it has tokenized.
static void count_told(void *user, const char *line) {
    *(int *)user += strstr(line, "tokenized ") != NULL;
}

// Opens, and returns the hash of the ids. made: how many times they were made.
static uint64_t open_text(const tr_data_options *options, int *made) {
    tr_data_options own = *options;
    own.say = count_told;
    own.say_user = made;
    *made = 0;
    tr_dataset *data = scratch_open(&own);
    uint64_t hash = tr_dataset_hash(data);
    int32_t input[4], target[4];
    int64_t first = 0;
    tr_error err = {0};
    assert_int_equal(tr_dataset_read(data, &first, 1, (void *[]){input, target}, &err),
                     TR_OK);
    tr_dataset_destroy(data);
    return hash;
}

static uint64_t open_made(const tr_data_options *options, int wanted) {
    int made = 0;
    uint64_t hash = open_text(options, &made);
    assert_int_equal(made, wanted);
    return hash;
}

static tr_data_options options_for(const char *const *paths, size_t count) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "text",
                             .paths = paths,
                             .path_count = count,
                             .sequence_length = 4,
                             .tokenizer = GPT2,
                             .eos_token = "<|end|>"};
}

// The only file in the cache folder; path: [SCRATCH_PATH_MAX]. Returns how many there
// are.
static int cached(void **state, char *path) {
    char folder[SCRATCH_PATH_MAX];
    int count = 0;
    DIR *open_folder = opendir(scratch_path(folder, state, "cache/tranche"));
    assert_non_null(open_folder);
    for (struct dirent *entry; (entry = readdir(open_folder)) != NULL;) {
        if (entry->d_name[0] != '.') {
            int length =
                snprintf(path, SCRATCH_PATH_MAX, "%s/%s", folder, entry->d_name);
            assert_in_range(length, 1, SCRATCH_PATH_MAX - 1);
            count++;
        }
    }
    closedir(open_folder);
    return count;
}

static void used_until_a_change(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], tokenizer[SCRATCH_PATH_MAX];
    char *json = NULL;
    size_t bytes = 0;
    const char *paths[] = {scratch_text(a, state, "a", "the men said it is great"),
                           scratch_text(b, state, "b", "and so on")};
    tr_data_options options = options_for(paths, 2);
    uint64_t first = open_made(&options, 1);
    assert_true(open_made(&options, 0) == first);
    // Names and times are no change.
    char copy[SCRATCH_PATH_MAX];
    paths[0] = scratch_text(copy, state, "copy", "the men said it is great");
    assert_true(open_made(&options, 0) == first);
    // Content, order and number of files are.
    scratch_text(copy, state, "copy", "the men said it iz great");
    assert_true(open_made(&options, 1) != first);
    scratch_text(copy, state, "copy", "the men said it is great");
    assert_true(open_made(&options, 0) == first);
    const char *turned[] = {b, a};
    options.paths = turned;
    assert_true(open_made(&options, 1) != first);
    options.paths = paths;
    options.path_count = 1;
    assert_true(open_made(&options, 1) != first);
    options.path_count = 2;
    // So are the options, and the tokenizer.
    options.plain_special = true;
    assert_true(open_made(&options, 1) == first); // there are no special tokens in it
    options.plain_special = false;
    options.document_separator = " ";
    assert_true(open_made(&options, 1) != first);
    options.document_separator = NULL;
    options.eos_token = "a";
    assert_true(open_made(&options, 1) != first);
    options.eos_token = "<|end|>";
    assert_int_equal(tr__file_read(GPT2, 1 << 20, &json, &bytes, NULL), TR_OK);
    options.tokenizer = scratch_file(tokenizer, state, "t.json", json, bytes);
    assert_true(open_made(&options, 0) == first);
    json[bytes] = '\n'; // in place of the zero behind it
    scratch_file(tokenizer, state, "t.json", json, bytes + 1);
    assert_true(open_made(&options, 1) == first);
    tr__free(json);
}

// Another edit in the middle of a file of more than is hashed of other formats' data.
static void any_byte_counts(void **state) {
    enum { BYTES = 17 << 20 };
    char a[SCRATCH_PATH_MAX];
    char *text = malloc(BYTES);
    assert_non_null(text);
    for (size_t i = 0; i < BYTES; i++) {
        text[i] = "the men said so "[i % 16];
    }
    const char *paths[] = {scratch_file(a, state, "a", text, BYTES)};
    tr_data_options options = options_for(paths, 1);
    uint64_t first = open_made(&options, 1);
    for (size_t k = 0; k < 3; k++) {
        size_t at = BYTES / 2 + 100001 * k;
        text[at] ^= 1;
        scratch_file(a, state, "a", text, BYTES);
        assert_true(open_made(&options, 1) != first);
        text[at] ^= 1;
    }
    free(text);
}

static void assert_made_again(const tr_data_options *options, uint64_t hash) {
    assert_true(open_made(options, 1) == hash);
    assert_true(open_made(options, 0) == hash);
}

// One bit, or the length, is another: never the ids that were not made.
static void spoilt_files(void **state) {
    char a[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX];
    char *whole = NULL;
    size_t bytes = 0;
    const char *paths[] = {scratch_text(a, state, "a",
                                        "the men said it is great "
                                        "and so on\nfor all of them")};
    tr_data_options options = options_for(paths, 1);
    uint64_t hash = open_made(&options, 1);
    unsigned seed = 5;
    assert_int_equal(cached(state, path), 1);
    assert_int_equal(tr__file_read(path, 1 << 20, &whole, &bytes, NULL), TR_OK);
    for (int i = 0; i < SPOILT; i++) {
        size_t at = (size_t)rand_r(&seed) % bytes, length = bytes;
        char saved = whole[at];
        whole[at] = (char)(saved ^ 1 << (rand_r(&seed) % 8));
        if (i % 4 == 0) {
            whole[at] = saved;
            length = (size_t)rand_r(&seed) % bytes;
        }
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(whole, 1, length, file), length);
        assert_int_equal(fclose(file), 0);
        assert_made_again(&options, hash);
        whole[at] = saved;
    }
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(whole, 1, bytes, file), bytes); // twice
    assert_int_equal(fclose(file), 0);
    assert_made_again(&options, hash);
    tr__free(whole);
    assert_int_equal(cached(state, path), 1);
}

static void assert_text(const char *path, const char *text) {
    char *found = NULL;
    size_t bytes = 0;
    assert_int_equal(tr__file_read(path, 1 << 20, &found, &bytes, NULL), TR_OK);
    assert_string_equal(found, text);
    tr__free(found);
}

// Links, pipes and folders in the place of the file or of the one that is written.
static void strangers(void **state) {
    static const char *const ends[] = {"", ".partial"};
    char a[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX], other[SCRATCH_PATH_MAX];
    char place[SCRATCH_PATH_MAX + 16];
    const char *paths[] = {scratch_text(a, state, "a", "the men said it is great")};
    tr_data_options options = options_for(paths, 1);
    uint64_t hash = open_made(&options, 1);
    assert_int_equal(cached(state, path), 1);
    scratch_text(other, state, "other", "somebody's");
    for (int i = 0; i < 2; i++) {
        snprintf(place, sizeof place, "%s%s", path, ends[i]);
        unlink(path);
        unlink(place);
        assert_int_equal(symlink(other, place), 0);
        assert_made_again(&options, hash);
        unlink(path);
        unlink(place);
        assert_int_equal(link(other, place), 0);
        assert_made_again(&options, hash);
        unlink(path);
        unlink(place);
        assert_int_equal(mkfifo(place, 0666), 0);
        assert_made_again(&options, hash);
        assert_text(other, "somebody's");
        unlink(path);
        unlink(place);
        assert_int_equal(mkdir(place, 0777), 0);
        scratch_refuse(&options, TR_IO, path);
        assert_int_equal(rmdir(place), 0);
    }
    // What a process that was killed has left is taken over.
    snprintf(place, sizeof place, "%s.partial", path);
    FILE *file = fopen(place, "wb");
    assert_non_null(file);
    assert_true(fputs("a part of more than that text has come to, and more", file) >=
                0);
    assert_int_equal(fclose(file), 0);
    assert_made_again(&options, hash);
    assert_int_equal(cached(state, path), 1);
}

// One writes at a time; who is alone writes beside; both may keep.
static void claims(void **state) {
    tr_text_cache cache = {.key = 77, .width = 2, .vocabulary = 9};
    tr_text_writer first, second, third;
    tr_text_claim claim;
    tr_error err = {0};
    char path[SCRATCH_PATH_MAX];
    const uint16_t ids[] = {1, 2, 8};
    assert_int_equal(tr__text_cache_name(&cache, &err), TR_OK);
    assert_int_equal(tr__text_cache_claim(&cache, false, &first, &claim, &err), TR_OK);
    assert_int_equal(claim, TR_TEXT_OURS);
    int64_t progress = tr__text_cache_progress(&cache);
    assert_int_equal(tr__text_cache_claim(&cache, false, &second, &claim, &err), TR_OK);
    assert_int_equal(claim, TR_TEXT_TAKEN);
    assert_int_equal(second.file, -1);
    assert_int_equal(tr__text_cache_claim(&cache, true, &third, &claim, &err), TR_OK);
    assert_int_equal(claim, TR_TEXT_OURS);
    assert_int_equal(tr__text_cache_write(&first, ids, sizeof ids, &err), TR_OK);
    assert_true(tr__text_cache_progress(&cache) != progress);
    assert_int_equal(tr__text_cache_write(&third, ids, sizeof ids, &err), TR_OK);
    assert_false(tr__text_cache_find(&cache));
    cache.ids = 3;
    cache.documents = 1;
    assert_int_equal(tr__text_cache_keep(&cache, &third, &err), TR_OK);
    assert_true(tr__text_cache_find(&cache));
    assert_int_equal(tr__text_cache_keep(&cache, &first, &err), TR_OK);
    cache.ids = 0;
    assert_true(tr__text_cache_find(&cache));
    assert_int_equal(cache.ids, 3);
    assert_int_equal(cached(state, path), 1);
    cache.vocabulary = 8; // an id is none of it
    assert_false(tr__text_cache_find(&cache));
    // What is dropped leaves nothing.
    assert_int_equal(tr__text_cache_claim(&cache, false, &first, &claim, &err), TR_OK);
    tr__text_cache_drop(&first);
    tr__text_cache_drop(&first);
    assert_int_equal(cached(state, path), 1);
}

// What a folder or file lets others do.
static unsigned others(const char *path) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & 077;
}

// Text that others cannot read must not come to them by its ids.
static void test_private(void **state) {
    char text[SCRATCH_PATH_MAX], folder[SCRATCH_PATH_MAX], kept[SCRATCH_PATH_MAX];
    mode_t mask = umask(0);
    const char *const paths[] = {scratch_text(text, state, "text", "the men said so")};
    tr_data_options options = options_for(paths, 1);
    open_made(&options, 1);
    scratch_path(folder, state, "cache/tranche");
    assert_int_equal(cached(state, kept), 1);
    assert_int_equal(others(folder), 0);
    assert_int_equal(others(kept), 0);
    // those of an earlier version are closed
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(kept, 0644), 0);
    open_made(&options, 0);
    assert_int_equal(others(folder), 0);
    assert_int_equal(others(kept), 0);
    umask(mask);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, own_cache, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(used_until_a_change), TEST(test_private), TEST(any_byte_counts),
        TEST(spoilt_files),        TEST(strangers),    TEST(claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
