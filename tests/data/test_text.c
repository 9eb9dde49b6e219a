// Formats bytes and tokens: windows, masks, and what is refused.
#include "data/scratch.h"

#include <glob.h>
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
        .size = sizeof(tr_data_options),
        .format = format,
        .paths = paths,
        .path_count = count,
        .sequence_length = length,
    };
}

// Window `index` must be want[0 .. n] as input and target.
static void expect_window(tr_dataset *dataset, int64_t index, const int32_t *want) {
    int64_t n = tr_dataset_tensors(dataset)->tensor[0].desc.shape.dim[0];
    int32_t *input = malloc((size_t)n * 4), *target = malloc((size_t)n * 4);
    tr_error err = {0};
    tr_status status =
        tr_dataset_read(dataset, &index, 1, (void *[]){input, target}, &err);
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
    const tr_batch_tensor *sample = tr_dataset_tensors(dataset)->tensor;
    assert_int_equal(tr_dataset_samples(dataset), 3);
    assert_int_equal(tr_dataset_vocabulary(dataset), 256);
    assert_int_equal(tr_dataset_classes(dataset), 256);
    assert_int_equal(sample[0].desc.dtype, TR_I32);
    assert_true(tr_shape_equal(sample[0].desc.shape, TR_SHAPE1(3)));
    assert_true(tr_shape_equal(sample[1].desc.shape, TR_SHAPE1(3)));
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
            data[i] = (unsigned char)((f * 31 + i * 7) % 255 + 1);
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
    assert_int_equal(
        tr_dataset_read(dataset, index, 3, (void *[]){input, target}, NULL), TR_OK);
    const int32_t want_input[] = {'g', 'h', 'a', 'b', 'g', 'h'};
    const int32_t want_target[] = {'h', 'i', 'b', 'c', 'h', 'i'};
    assert_memory_equal(input, want_input, sizeof input);
    assert_memory_equal(target, want_target, sizeof target);
    scratch_refuse_read(dataset, 4, TR_USAGE,
                        "sample 4 was asked for, and the dataset has 4");
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
    scratch_refuse(&options, TR_DATA,
                   "first.bin: token 257 at position 0 is outside the vocabulary of "
                   "257; raise model.vocab_size to at least 258");
    paths[0] = paths[1];
    options.path_count = 1;
    options.sequence_length = 2;
    options.vocabulary = 100;
    scratch_refuse(&options, TR_DATA,
                   "b%s.bin: token 100 at position 2 is outside the vocabulary of 100; "
                   "raise model.vocab_size to at least 101");
    // No vocabulary known: ids must still be ids.
    paths[0] = scratch_text(c, state, "c", "\xFF\xFF\xFF\xFF\x01\x01\x01\x01");
    options.dtype = "u32";
    options.vocabulary = 0;
    options.sequence_length = 1;
    scratch_refuse(&options, TR_DATA, "token 4294967295 at position 0");
    // Bytes have a vocabulary too.
    options = text_options("bytes", paths, 1, 4);
    options.vocabulary = 128;
    scratch_refuse(&options, TR_DATA, "c: byte 255 at position 0");
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
    assert_int_equal(
        tr_dataset_read(dataset, index, 2, (void *[]){input, target}, NULL), TR_OK);
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
    scratch_refuse(&options, TR_DATA, "labels: label 2 at position 2");
    options.vocabulary = 3;
    scratch_refuse(&options, TR_DATA, "labels: label -1 at position 3");
    // 16 bits are signed where the vocabulary is larger than they reach, too.
    const int16_t narrow[] = {-100, 1, -2, 0};
    options.vocabulary = 70000;
    options.labels = scratch_file(l, state, "labels", narrow, sizeof narrow);
    scratch_refuse(&options, TR_DATA, "labels: label -2 at position 2");
    const int16_t good[] = {-100, 1, 32767, 0};
    options.labels = scratch_file(l, state, "labels", good, sizeof good);
    tr_dataset_destroy(scratch_open(&options));
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
                   "after the last; add data or lower data.max_length");
    options.sequence_length = 0;
    scratch_refuse(&options, TR_USAGE, "data.max_length");
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

// ---- what kind of file it is

enum { MANY = 3000 };

// MANY ids below `bound`, as u16 or u32.
static const char *write_ids(void **state, char *path, const char *name, int width,
                             uint32_t bound) {
    unsigned char raw[MANY * 4];
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t id = (i * 7919u + 13u) % bound;
        for (int b = 0; b < width; b++) {
            raw[i * (uint32_t)width + (uint32_t)b] = (unsigned char)(id >> (8 * b));
        }
    }
    return scratch_file(path, state, name, raw, (size_t)MANY * (size_t)width);
}

static void the_width_of_ids_is_seen(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], c[SCRATCH_PATH_MAX];
    const char *paths[] = {write_ids(state, a, "narrow.bin", 2, 50000),
                           write_ids(state, b, "wide.bin", 4, 50000)};
    tr_data_options options = text_options("tokens", paths, 2, 8);
    options.vocabulary = 50257;
    scratch_refuse(&options, TR_DATA,
                   "wide.bin: its ids are u32, not u16 (as u16 every second one is "
                   "nearly 0): set data.dtype to \"u32\"");
    options.dtype = "u32";
    scratch_refuse(&options, TR_DATA,
                   "narrow.bin: its ids are u16, not u32: set data.dtype to \"u16\"");
    // A vocabulary beyond 16 bits: the upper halves are small, but not all 0.
    paths[0] = write_ids(state, c, "large.bin", 4, 128000);
    options.path_count = 1;
    options.vocabulary = 128256;
    tr_dataset_destroy(scratch_open(&options));
    options.dtype = "u16";
    scratch_refuse(&options, TR_DATA, "large.bin: its ids are u32, not u16");
    paths[0] = a;
    tr_dataset_destroy(scratch_open(&options));
    options.dtype = "u32";
    scratch_refuse(&options, TR_DATA, "narrow.bin: its ids are u16, not u32");
    // Few ids tell nothing, and a single wrong one is a wrong one.
    const unsigned char few[] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
    options.dtype = "u16";
    paths[0] = scratch_file(c, state, "few.bin", few, sizeof few);
    options.sequence_length = 2;
    tr_dataset_destroy(scratch_open(&options));
}

// The last id of a file of several pieces, of either width.
static void a_late_id_is_found(void **state) {
    enum { COUNT = 5 << 20 }; // of 16 bits: ten chunks
    char a[SCRATCH_PATH_MAX];
    uint16_t *ids = malloc((size_t)COUNT * sizeof *ids);
    for (int i = 0; i < COUNT; i++) {
        ids[i] = (uint16_t)(i % 991 + 1);
    }
    ids[COUNT - 1] = 1000;
    const char *const paths[] = {
        scratch_file(a, state, "a.bin", ids, (size_t)COUNT * sizeof *ids)};
    tr_data_options options = text_options("tokens", paths, 1, 1024);
    options.vocabulary = 1000;
    scratch_refuse(&options, TR_DATA,
                   "a.bin: token 1000 at position 5242879 is outside the vocabulary");
    options.sizes_only = true; // nobody will read it
    tr_dataset_destroy(scratch_open(&options));
    options.sizes_only = false;
    options.vocabulary = 1001;
    tr_dataset_destroy(scratch_open(&options));
    ids[COUNT / 2 + 1] = 5000;
    scratch_file(a, state, "a.bin", ids, (size_t)COUNT * sizeof *ids);
    scratch_refuse(&options, TR_DATA, "token 5000 at position 2621441 is outside");
    free(ids);
}

// What a scan of a large file found is kept while the file stays as it is.
static void scans_of_large_files_are_kept(void **state) {
    const off_t bytes = (off_t)256 << 20;
    char a[SCRATCH_PATH_MAX], cache[SCRATCH_PATH_MAX], pattern[SCRATCH_PATH_MAX + 32];
    char *before = getenv("XDG_CACHE_HOME") ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    const unsigned char ids[] = {100, 0, 100, 0};
    const char *const paths[] = {scratch_file(a, state, "a.bin", ids, sizeof ids)};
    tr_data_options options = text_options("tokens", paths, 1, 1024);
    glob_t found;
    assert_int_equal(truncate(a, bytes), 0); // of holes: zeros
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch_path(cache, state, "cache"), 1),
                     0);
    options.vocabulary = 100;
    scratch_refuse(&options, TR_DATA, "a.bin: token 100 at position 0 is outside");
    snprintf(pattern, sizeof pattern, "%s/tranche/ids-*", cache);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    FILE *entry = fopen(found.gl_pathv[0], "r+");
    char text[16] = "";
    assert_non_null(fgets(text, sizeof text, entry));
    assert_string_equal(text, "100 100\n");
    rewind(entry);
    assert_true(fputs("001 001\n", entry) >= 0); // it is what counts
    assert_int_equal(fclose(entry), 0);
    tr_dataset_destroy(scratch_open(&options));
    entry = fopen(found.gl_pathv[0], "w"); // damaged, it is none
    assert_int_equal(fclose(entry), 0);
    scratch_refuse(&options, TR_DATA, "a.bin: token 100 at position 0 is outside");
    globfree(&found);
    assert_int_equal(truncate(a, bytes - 2), 0); // another state, another scan
    assert_int_equal(truncate(a, bytes), 0);
    scratch_refuse(&options, TR_DATA, "a.bin: token 100 at position 0 is outside");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2);
    globfree(&found);
    assert_int_equal(
        before ? setenv("XDG_CACHE_HOME", before, 1) : unsetenv("XDG_CACHE_HOME"), 0);
    free(before);
}

static void numpy_files_are_no_tokens(void **state) {
    char a[SCRATCH_PATH_MAX], l[SCRATCH_PATH_MAX];
    const int32_t ids[] = {1, 2, 3, 4};
    const char *paths[] = {scratch_npy(
        a, state, "ids.npy",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }", ids, sizeof ids)};
    tr_data_options options = text_options("tokens", paths, 1, 2);
    scratch_refuse(&options, TR_DATA,
                   "ids.npy: is a .npy file, whose header would be read as tokens; "
                   "write the ids alone: "
                   "numpy.load(FILE).astype(\"<u2\").tofile(\"train.bin\")");
    options.dtype = "u32";
    scratch_refuse(&options, TR_DATA, "astype(\"<u4\")");
    options.labels = a;
    paths[0] = scratch_file(l, state, "ids.bin", ids, sizeof ids);
    scratch_refuse(&options, TR_DATA, "ids.npy: is a .npy file");
    // Bytes are bytes.
    paths[0] = a;
    options = text_options("bytes", paths, 1, 2);
    tr_dataset_destroy(scratch_open(&options));
}

static void say(void *user, const char *line) {
    char *lines = user;
    size_t length = strlen(lines);
    snprintf(lines + length, 512 - length, "%s\n", line);
}

static void what_is_passed_over_is_said(void **state) {
    char d[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX], lines[512] = "";
    assert_int_equal(mkdir(scratch_path(d, state, "d"), 0777), 0);
    scratch_text(path, state, "d/.notes", "not this");
    scratch_file(path, state, "d/image", "\x89PNG\0\0", 6);
    const char *const paths[] = {d};
    tr_data_options options = text_options("bytes", paths, 1, 2);
    scratch_refuse(&options, TR_DATA, "only binary files in this folder");
    scratch_text(path, state, "d/text", "abcdefg");
    options.say = say;
    options.say_user = lines;
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), 3);
    tr_dataset_destroy(dataset);
    assert_string_equal(
        lines, "data.train: passed over 1 hidden file or folder (the name begins with "
               "a dot); name what is to be taken\n"
               "data.train: passed over 1 binary file (a zero byte among the first "
               "8192); name what is to be taken\n");
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
        cmocka_unit_test_setup_teardown(the_width_of_ids_is_seen, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_late_id_is_found, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(scans_of_large_files_are_kept, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(numpy_files_are_no_tokens, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_is_passed_over_is_said, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_is_named, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
