// What data is known by: what is in its files, not what they are called.
#include "data/scratch.h"
#include "data/sources/content.h"
#include "data/sources/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t hash_of(const char *path) {
    tr_file_list list = {0};
    uint64_t hash = 0;
    assert_int_equal(tr__file_list_add(&list, path, NULL), TR_OK);
    assert_int_equal(tr__content_hash(&list, &hash, NULL), TR_OK);
    tr__file_list_clear(&list);
    return hash;
}

static void one_byte_at(const char *path, int64_t at, char byte) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseeko(file, (off_t)at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, file), byte);
    assert_int_equal(fclose(file), 0);
}

// Any byte of a file that is hashed whole.
static void every_byte_counts(void **state) {
    enum { SIZE = TR_CONTENT_WHOLE };
    char path[SCRATCH_PATH_MAX], copy[SCRATCH_PATH_MAX];
    static const int64_t places[] = {0, 1, TR_CONTENT_BLOCK, SIZE / 2 + 1, SIZE - 1};
    scratch_text(path, state, "a", "");
    assert_int_equal(truncate(path, SIZE), 0);
    uint64_t before = hash_of(path);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        one_byte_at(path, places[i], 'x');
        assert_true(hash_of(path) != before);
        one_byte_at(path, places[i], 0);
        assert_true(hash_of(path) == before);
    }
    // Neither its name nor its times.
    scratch_text(copy, state, "b", "");
    assert_int_equal(truncate(copy, SIZE), 0);
    assert_true(hash_of(copy) == before);
    assert_int_equal(truncate(copy, SIZE - 1), 0);
    assert_true(hash_of(copy) != before);
}

// Of a large one the ends and the blocks between; a terabyte (of holes) takes no longer
// than a few of them.
static void large_files_are_sampled(void **state) {
    const int64_t size = (int64_t)1 << 40;
    char path[SCRATCH_PATH_MAX];
    scratch_text(path, state, "a", "");
    if (truncate(path, (off_t)size) != 0) {
        skip(); // a file system of small files
    }
    uint64_t before = hash_of(path);
    const int64_t step = (size - TR_CONTENT_BLOCK) / (TR_CONTENT_BLOCKS - 1);
    const int64_t places[] = {0, TR_CONTENT_BLOCK - 1, step + 1,
                              size - TR_CONTENT_BLOCK, size - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        one_byte_at(path, places[i], 'x');
        assert_true(hash_of(path) != before);
        one_byte_at(path, places[i], 0);
    }
    one_byte_at(path, step / 2, 'x'); // between two: not seen, as the header says
    assert_true(hash_of(path) == before);
}

static uint64_t dataset_hash(const tr_data_options *options, uint64_t *names) {
    tr_dataset *dataset = scratch_open(options);
    uint64_t hash = tr_dataset_hash(dataset);
    *names = tr__dataset_identity(dataset)->names;
    tr_dataset_destroy(dataset);
    return hash;
}

// Of each format that reads files: an edit in place changes what it is known by, and
// another name does not.
static void formats_know_content(void **state) {
    static const char *const formats[] = {"bytes", "tokens", "csv"};
    for (int i = 0; i < 3; i++) {
        char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX];
        uint64_t names[3];
        const char *paths[] = {scratch_text(a, state, "a", "1,2,0\n3,4,1\n")};
        tr_data_options options = {.size = sizeof(tr_data_options),
                                   .format = formats[i],
                                   .paths = paths,
                                   .path_count = 1,
                                   .sequence_length = i == 2 ? 0 : 2};
        uint64_t first = dataset_hash(&options, &names[0]);
        scratch_text(a, state, "a", "1,2,0\n3,5,1\n");
        assert_true(dataset_hash(&options, &names[1]) != first);
        assert_true(names[0] == names[1]);
        paths[0] = scratch_text(b, state, "b", "1,2,0\n3,4,1\n");
        assert_true(dataset_hash(&options, &names[2]) == first);
        assert_true(names[0] != names[2]);
    }
}

static void npy_and_labels_count(void **state) {
    char x[SCRATCH_PATH_MAX], y[SCRATCH_PATH_MAX];
    float features[] = {1, 2, 3, 4};
    int32_t labels[] = {0, 1};
    uint64_t names, hash[3];
    for (int i = 0; i < 3; i++) {
        features[3] = i == 1 ? 5 : 4;
        labels[1] = i == 2 ? 0 : 1;
        const char *const paths[] = {
            scratch_npy(x, state, "x.npy",
                        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
                        features, sizeof features)};
        tr_data_options options = {
            .size = sizeof(tr_data_options),
            .format = "npy",
            .paths = paths,
            .path_count = 1,
            .labels =
                scratch_npy(y, state, "y.npy",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
                            labels, sizeof labels)};
        hash[i] = dataset_hash(&options, &names);
    }
    assert_true(hash[0] != hash[1] && hash[0] != hash[2]);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(every_byte_counts),
        SCRATCH_TEST(large_files_are_sampled),
        SCRATCH_TEST(formats_know_content),
        SCRATCH_TEST(npy_and_labels_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
