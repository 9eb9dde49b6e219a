// Formats bytes and tokens: windows, masks, and what is refused.
#include "data/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static tr_data_options text_options(const char *format, const char *const *paths,
                                    size_t count, int64_t length) {
    return (tr_data_options){
        .format = format,
        .paths = paths,
        .path_count = count,
        .sequence_length = length,
    };
}

// Window `index` must be want[0 .. n] as input and target.
static void expect_window(tr_dataset *dataset, int64_t index, const int32_t *want) {
    int64_t n = tr_dataset_sample(dataset).input.shape.dim[0];
    int32_t *input = malloc((size_t)n * 4), *target = malloc((size_t)n * 4);
    tr_error err = {0};
    tr_status status = tr_dataset_read(dataset, &index, 1, input, target, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TR_OK);
    assert_memory_equal(input, want, (size_t)n * 4);
    assert_memory_equal(target, want + 1, (size_t)n * 4);
    free(input);
    free(target);
}

static void bytes_are_joined(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], c[SCRATCH_PATH_MAX];
    // 10 bytes over three files, one of them empty: 3 windows of 3.
    const char *const paths[] = {
        scratch_file(a, state, "a", "\x00\x01\x02\x03", 4),
        scratch_text(b, state, "b", ""),
        scratch_file(c, state, "c", "\xFF\xFE\x06\x07\x08\x09", 6)};
    tr_data_options options = text_options("bytes", paths, 3, 3);
    tr_dataset *dataset = scratch_open(&options);
    tr_sample_desc sample = tr_dataset_sample(dataset);
    assert_int_equal(tr_dataset_samples(dataset), 3);
    assert_int_equal(tr_dataset_vocabulary(dataset), 256);
    assert_int_equal(tr_dataset_classes(dataset), 256);
    assert_int_equal(sample.input.dtype, TR_I32);
    assert_true(tr_shape_equal(sample.input.shape, TR_SHAPE1(3)));
    assert_true(tr_shape_equal(sample.target.shape, TR_SHAPE1(3)));
    assert_string_equal(tr_dataset_about(dataset),
                        "3 files, 10 B in windows of 3 bytes");
    expect_window(dataset, 0, (const int32_t[]){0, 1, 2, 3});
    expect_window(dataset, 1, (const int32_t[]){3, 255, 254, 6});
    expect_window(dataset, 2, (const int32_t[]){6, 7, 8, 9});
    tr_dataset_destroy(dataset);
}

// More files than are kept open, and windows longer than what is read at once.
static void long_windows_over_many_files(void **state) {
    enum { FILES = 150, EACH = 97, N = 4900 };
    char path[SCRATCH_PATH_MAX], name[32];
    unsigned char data[EACH];
    static int32_t want[FILES * EACH];
    assert_int_equal(mkdir(scratch_path(path, state, "d"), 0777), 0);
    for (int f = 0; f < FILES; f++) {
        for (int i = 0; i < EACH; i++) {
            data[i] = (unsigned char)((f * 31 + i * 7) % 256);
            want[f * EACH + i] = data[i];
        }
        snprintf(name, sizeof name, "d/%03d", f);
        scratch_file(path, state, name, data, EACH);
    }
    const char *const paths[] = {scratch_path(path, state, "d")};
    tr_data_options options = text_options("bytes", paths, 1, N);
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), (FILES * EACH - 1) / N);
    assert_true(tr_dataset_bytes(dataset) > FILES * 8);
    for (int64_t i = 0; i < tr_dataset_samples(dataset); i++) {
        expect_window(dataset, i, want + i * N);
    }
    tr_dataset_destroy(dataset);
}

static void rows_are_packed_in_the_order_asked(void **state) {
    char a[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(a, state, "a", "abcdefghi")};
    tr_data_options options = text_options("bytes", paths, 1, 2);
    tr_dataset *dataset = scratch_open(&options);
    const int64_t index[] = {3, 0, 3};
    int32_t input[6], target[6];
    assert_int_equal(tr_dataset_read(dataset, index, 3, input, target, NULL), TR_OK);
    const int32_t want_input[] = {'g', 'h', 'a', 'b', 'g', 'h'};
    const int32_t want_target[] = {'h', 'i', 'b', 'c', 'h', 'i'};
    assert_memory_equal(input, want_input, sizeof input);
    assert_memory_equal(target, want_target, sizeof target);
    scratch_refuse_read(dataset, 4, TR_USAGE, "sample 4 of a dataset that has 4");
    scratch_refuse_read(dataset, -1, TR_USAGE, "sample -1");
    tr_dataset_destroy(dataset);
}

static void tokens_of_both_widths(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX];
    const unsigned char narrow[] = {1, 0, 2, 0, 0x50, 0xC3, 3, 0, 4, 0};
    const unsigned char wide[] = {1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0};
    const char *paths[] = {scratch_file(a, state, "a.bin", narrow, sizeof narrow)};
    tr_data_options options = text_options("tokens", paths, 1, 2);
    options.vocabulary = 50257;
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), 2);
    expect_window(dataset, 0, (const int32_t[]){1, 2, 50000});
    expect_window(dataset, 1, (const int32_t[]){50000, 3, 4});
    uint64_t hash = tr_dataset_hash(dataset);
    tr_dataset_destroy(dataset);

    paths[0] = scratch_file(b, state, "b.bin", wide, sizeof wide);
    options.vocabulary = 70000;
    options.dtype = "u32";
    dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), 1);
    expect_window(dataset, 0, (const int32_t[]){1, 65536, 2});
    assert_true(tr_dataset_hash(dataset) != hash);
    tr_dataset_destroy(dataset);
}

static void ids_outside_of_the_vocabulary(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], c[SCRATCH_PATH_MAX];
    const unsigned char ids[] = {1, 0, 2, 0, 100, 0, 3, 0};
    const char *paths[] = {scratch_text(a, state, "first.bin", "\x01\x01"),
                           scratch_file(b, state, "b%s.bin", ids, sizeof ids)};
    tr_data_options options = text_options("tokens", paths, 2, 4);
    options.vocabulary = 1000;
    tr_dataset *dataset = scratch_open(&options);
    expect_window(dataset, 0, (const int32_t[]){257, 1, 2, 100, 3});
    tr_dataset_destroy(dataset);
    options.vocabulary = 257;
    dataset = scratch_open(&options);
    scratch_refuse_read(dataset, 0, TR_DATA,
                        "first.bin: token 257 at position 0 is outside the vocabulary "
                        "of 257; raise model.vocab_size to at least 258");
    tr_dataset_destroy(dataset);
    paths[0] = paths[1];
    options.path_count = 1;
    options.sequence_length = 2;
    options.vocabulary = 100;
    dataset = scratch_open(&options);
    scratch_refuse_read(dataset, 0, TR_DATA,
                        "b%s.bin: token 100 at position 2 is outside the vocabulary of "
                        "100; raise model.vocab_size to at least 101");
    tr_dataset_destroy(dataset);
    // No vocabulary known: ids must still be ids.
    paths[0] = scratch_text(c, state, "c", "\xFF\xFF\xFF\xFF\x01\x01\x01\x01");
    options.dtype = "u32";
    options.vocabulary = 0;
    options.sequence_length = 1;
    dataset = scratch_open(&options);
    scratch_refuse_read(dataset, 0, TR_DATA, "token 4294967295 at position 0");
    tr_dataset_destroy(dataset);
    // Bytes have a vocabulary too.
    options = text_options("bytes", paths, 1, 4);
    options.vocabulary = 128;
    dataset = scratch_open(&options);
    scratch_refuse_read(dataset, 0, TR_DATA, "c: byte 255 at position 0");
    tr_dataset_destroy(dataset);
}

static void labels_mask_targets(void **state) {
    char a[SCRATCH_PATH_MAX], l[SCRATCH_PATH_MAX];
    const int16_t masks[] = {-100, 'b', -100, -100, 'x', 'f', 'g'};
    const char *const paths[] = {scratch_text(a, state, "a", "abcdefg")};
    tr_data_options options = text_options("bytes", paths, 1, 3);
    options.labels = scratch_file(l, state, "labels", masks, sizeof masks);
    tr_dataset *dataset = scratch_open(&options);
    const int64_t index[] = {0, 1};
    int32_t input[6], target[6];
    const int32_t want[] = {'b', -100, -100, 'x', 'f', 'g'};
    assert_int_equal(tr_dataset_read(dataset, index, 2, input, target, NULL), TR_OK);
    assert_memory_equal(target, want, sizeof want);
    assert_int_equal(input[3], 'd');
    tr_dataset_destroy(dataset);
}

static void labels_are_checked(void **state) {
    char a[SCRATCH_PATH_MAX], l[SCRATCH_PATH_MAX];
    const int32_t wide[] = {-100, 1, 2, -1};
    const unsigned char ids[] = {1, 0, 1, 0, 1, 0, 1, 0};
    const char *const paths[] = {scratch_file(a, state, "a", ids, sizeof ids)};
    tr_data_options options = text_options("tokens", paths, 1, 3);
    options.vocabulary = 2;
    options.labels = scratch_file(l, state, "labels", wide, sizeof wide);
    tr_dataset *dataset = scratch_open(&options);
    scratch_refuse_read(dataset, 0, TR_DATA, "labels: label 2 at position 2");
    tr_dataset_destroy(dataset);
    options.vocabulary = 3;
    dataset = scratch_open(&options);
    scratch_refuse_read(dataset, 0, TR_DATA, "labels: label -1 at position 3");
    tr_dataset_destroy(dataset);
    options.labels = scratch_file(l, state, "labels", wide, 10);
    scratch_refuse(&options, TR_DATA,
                   "needs one int16 or int32 for each of the 4 tokens: 8 or 16 bytes, "
                   "not 10");
    options.labels = scratch_path(l, state, "missing");
    scratch_refuse(&options, TR_DATA, "missing: cannot open");
}

static void too_little_is_refused(void **state) {
    char a[SCRATCH_PATH_MAX], d[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(a, state, "a", "abc")};
    tr_data_options options = text_options("bytes", paths, 1, 3);
    scratch_refuse(&options, TR_DATA,
                   "data.train: 3 bytes are too short for one sample of 3 and a target "
                   "after the last; add data or lower model.n_positions");
    options.sequence_length = 0;
    scratch_refuse(&options, TR_USAGE, "model.n_positions");
    options = text_options("tokens", paths, 1, 1);
    scratch_refuse(&options, TR_DATA, "3 bytes are no whole number of entries of 2");
    scratch_text(a, state, "a", "");
    options = text_options("bytes", paths, 1, 1);
    scratch_refuse(&options, TR_DATA, "only empty files");
    assert_int_equal(mkdir(scratch_path(d, state, "d"), 0777), 0);
    paths[0] = d;
    scratch_refuse(&options, TR_DATA, "no files in this folder");
    options.dtype = "u16";
    scratch_refuse(&options, TR_USAGE, "data.dtype: has no meaning for format bytes");
    options.format = "tokens";
    options.dtype = "u61";
    scratch_refuse(&options, TR_USAGE, "'u61' is not known; did you mean 'u16'?");
}

static void a_file_that_shrinks_is_named(void **state) {
    char a[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(a, state, "a", "abcdefg")};
    tr_data_options options = text_options("bytes", paths, 1, 3);
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(truncate(a, 5), 0);
    expect_window(dataset, 0, (const int32_t[]){'a', 'b', 'c', 'd'});
    scratch_refuse_read(dataset, 1, TR_IO, "a: ends 1 bytes early");
    tr_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_joined, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(long_windows_over_many_files, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(rows_are_packed_in_the_order_asked,
                                        scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(tokens_of_both_widths, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(ids_outside_of_the_vocabulary, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(labels_mask_targets, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(labels_are_checked, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(too_little_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_is_named, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
