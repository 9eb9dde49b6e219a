// Options to datasets: formats, splits, random data, callbacks, and memory that fails.
#include "data/scratch.h"

#include "base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void names_are_checked(void **state) {
    (void)state;
    const char *const paths[] = {"x"};
    scratch_refuse(
        &(tr_data_options){.size = sizeof(tr_data_options), .format = "byte"}, TR_USAGE,
        "data.format: 'byte' is not known; did you mean 'bytes'?");
    scratch_refuse(
        &(tr_data_options){.size = sizeof(tr_data_options), .format = "%s%n"}, TR_USAGE,
        "'%s%n' is not known");
    scratch_refuse(&(tr_data_options){.size = sizeof(tr_data_options)}, TR_USAGE,
                   "it is one of bytes, tokens, text, jsonl, csv, npy, random");
    scratch_refuse(&(tr_data_options){.size = sizeof(tr_data_options), .format = "csv"},
                   TR_USAGE, "data.train: format csv needs a file or a folder");
    scratch_refuse(&(tr_data_options){.size = sizeof(tr_data_options),
                                      .format = "random",
                                      .paths = paths,
                                      .path_count = 1},
                   TR_USAGE, "data.train: has no meaning for format random");
    scratch_refuse(&(tr_data_options){.size = sizeof(tr_data_options),
                                      .format = "csv",
                                      .paths = paths,
                                      .path_count = 1,
                                      .order = "sorted"},
                   TR_USAGE, "data.order: 'sorted' is not known");
    scratch_refuse(&(tr_data_options){.size = sizeof(tr_data_options),
                                      .format = "csv",
                                      .paths = paths,
                                      .path_count = 1,
                                      .validation_fraction = NAN},
                   TR_USAGE, "must be at least 0 and below 1");
    scratch_refuse(&(tr_data_options){.size = sizeof(tr_data_options),
                                      .format = "csv",
                                      .paths = paths,
                                      .path_count = 1,
                                      .validation_paths = paths,
                                      .validation_path_count = 1,
                                      .validation_fraction = 0.5},
                   TR_USAGE, "both a fraction and paths");
}

static tr_data_options random_options(int64_t samples, int64_t features,
                                      int64_t classes) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "random",
                             .samples = samples,
                             .features = features,
                             .classes = classes,
                             .seed = 1};
}

static void random_data_is_what_it_says(void **state) {
    enum { SAMPLES = 2000, FEATURES = 9, CLASSES = 4 };
    (void)state;
    tr_data_options options = random_options(SAMPLES, FEATURES, CLASSES);
    tr_dataset *dataset = scratch_open(&options);
    double sum = 0, squares = 0;
    int count[CLASSES] = {0};
    for (int64_t i = 0; i < SAMPLES; i++) {
        float row[FEATURES];
        int32_t label;
        assert_int_equal(tr_dataset_read(dataset, &i, 1, (void *[]){row, &label}, NULL),
                         TR_OK);
        assert_in_range(label, 0, CLASSES - 1);
        count[label]++;
        for (int f = 0; f < FEATURES; f++) {
            sum += row[f];
            squares += row[f] * row[f];
        }
    }
    double n = (double)SAMPLES * FEATURES;
    assert_true(fabs(sum / n) < 5 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 5 * sqrt(2 / n));
    for (int c = 0; c < CLASSES; c++) {
        assert_in_range(count[c], 400, 600);
    }
    // The same sample, however it is read.
    const int64_t pair[] = {7, 3};
    float rows[2 * FEATURES], one[FEATURES];
    int32_t labels[2], label;
    assert_int_equal(tr_dataset_read(dataset, pair, 2, (void *[]){rows, labels}, NULL),
                     TR_OK);
    assert_int_equal(
        tr_dataset_read(dataset, pair + 1, 1, (void *[]){one, &label}, NULL), TR_OK);
    assert_memory_equal(one, rows + FEATURES, sizeof one);
    assert_int_equal(label, labels[1]);
    uint64_t hash = tr_dataset_hash(dataset);
    tr_dataset_destroy(dataset);
    options.seed = 2;
    dataset = scratch_open(&options);
    assert_true(hash != tr_dataset_hash(dataset));
    tr_dataset_destroy(dataset);
}

static void random_sizes_are_checked(void **state) {
    (void)state;
    tr_data_options options = random_options(0, 1, 1);
    scratch_refuse(&options, TR_USAGE, "data.samples: random data needs at least 1");
    options = random_options(1, -1, 1);
    scratch_refuse(&options, TR_USAGE, "features");
    options = random_options(1LL << 60, 1 << 20, 1);
    scratch_refuse(&options, TR_USAGE, "is too large");
    options = random_options(INT64_MAX, 1, 1);
    scratch_refuse(&options, TR_USAGE, "2^62 are the most");
}

static void text_is_split_at_its_tail(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(path, state, "t", "abcdefghijk")};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "bytes",
                               .paths = paths,
                               .path_count = 1,
                               .sequence_length = 1,
                               .validation_fraction = 0.25};
    tr_dataset *train, *validation;
    assert_int_equal(tr_dataset_open(&options, &train, &validation, NULL), TR_OK);
    assert_int_equal(tr_dataset_samples(train), 7); // round(2.5) = 3 of 10
    assert_int_equal(tr_dataset_samples(validation), 3);
    assert_true(tr_dataset_hash(train) != tr_dataset_hash(validation));
    assert_int_equal(tr_dataset_vocabulary(validation), 256);
    assert_true(tr_dataset_bytes(validation) < tr_dataset_bytes(train));
    for (int64_t i = 0; i < 10; i++) {
        int32_t input, target;
        int64_t index = i < 7 ? i : i - 7;
        tr_dataset *part = i < 7 ? train : validation;
        assert_int_equal(
            tr_dataset_read(part, &index, 1, (void *[]){&input, &target}, NULL), TR_OK);
        assert_int_equal(input, 'a' + i);
    }
    scratch_refuse_read(train, 7, TR_USAGE,
                        "sample 7 was asked for, and the dataset has 7");
    tr_dataset_destroy(train);
    tr_dataset_destroy(validation);
    // Nobody asks for the validation part: the training part is the same.
    assert_int_equal(tr_dataset_open(&options, &train, NULL, NULL), TR_OK);
    assert_int_equal(tr_dataset_samples(train), 7);
    tr_dataset_destroy(train);
    options.validation_fraction = 0.04;
    scratch_refuse(&options, TR_DATA, "leaves none for validation; raise it");
    options.validation_fraction = 0.96;
    scratch_refuse(&options, TR_DATA, "leaves none for training; lower it");
}

// A table of rows 0, 1, ... whose label is a tenth of it; checks the split of it.
static void check_spread(void **state, int rows, double fraction) {
    char path[SCRATCH_PATH_MAX], text[8192];
    size_t bytes = 0;
    for (int r = 0; r < rows; r++) {
        bytes += (size_t)sprintf(text + bytes, "%d,%d\n", r, r / 10);
    }
    const char *const paths[] = {scratch_file(path, state, "t.csv", text, bytes)};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1,
                               .seed = 5,
                               .validation_fraction = fraction};
    tr_dataset *part[2];
    int seen[512] = {0};
    assert_int_equal(tr_dataset_open(&options, &part[0], &part[1], NULL), TR_OK);
    int64_t held = tr_dataset_samples(part[1]);
    assert_int_equal(held, llround(fraction * rows));
    assert_int_equal(tr_dataset_samples(part[0]), rows - held);
    for (int p = 0; p < 2; p++) {
        float last = -1;
        for (int64_t i = 0; i < tr_dataset_samples(part[p]); i++) {
            float row;
            int32_t label;
            assert_int_equal(
                tr_dataset_read(part[p], &i, 1, (void *[]){&row, &label}, NULL), TR_OK);
            assert_int_equal(label, (int)row / 10);
            assert_true(row > last); // the order of the file
            last = row;
            seen[(int)row]++;
            if (p == 1) { // one from each run
                assert_true(row >= (double)(i * rows / held));
                assert_true(row < (double)((i + 1) * rows / held));
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        assert_int_equal(seen[r], 1);
    }
    tr_dataset_destroy(part[1]);
    tr_dataset_destroy(part[0]);
}

static void tables_are_split_evenly(void **state) {
    const double fractions[] = {0.01, 0.1, 0.25, 1 / 3.0, 0.5, 0.77, 0.99};
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        check_spread(state, 100, fractions[i]);
        check_spread(state, 317, fractions[i]);
    }
    check_spread(state, 2, 0.5);
}

static void validation_may_have_its_own_files(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX];
    const char *const train_paths[] = {scratch_text(a, state, "a.csv", "1,0\n2,1\n")};
    const char *const paths[] = {scratch_text(b, state, "b.csv", "3,1\n")};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = train_paths,
                               .path_count = 1,
                               .validation_paths = paths,
                               .validation_path_count = 1};
    tr_dataset *train, *validation;
    assert_int_equal(tr_dataset_open(&options, &train, &validation, NULL), TR_OK);
    assert_int_equal(tr_dataset_samples(train), 2);
    assert_int_equal(tr_dataset_samples(validation), 1);
    assert_int_equal(tr_dataset_classes(validation), 2);
    tr_dataset_destroy(train);
    tr_dataset_destroy(validation);
    scratch_text(b, state, "b.csv", "3,2\n");
    scratch_refuse(&options, TR_DATA, "b.csv:1:2: '2' is no label in [0, 2)");
    scratch_text(b, state, "b.csv", "3,3,1\n");
    scratch_refuse(&options, TR_DATA, "b.csv:1: 3 columns where ");
}

// ---- a program's own data

typedef struct own_data {
    int destroyed, bad_input, bad_target;
    tr_status status;
} own_data;

static tr_status own_read(void *user, const int64_t *index, int64_t count,
                          void *const *rows, tr_error *err) {
    own_data *self = user;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        ((int32_t *)rows[0])[2 * i] = (int32_t)index[i];
        ((int32_t *)rows[0])[2 * i + 1] = self->bad_input ? 10 : 9;
        ((int32_t *)rows[1])[i] = self->bad_target ? -1 : TR_NO_TARGET;
    }
    return self->status;
}

static void own_destroy(void *user) {
    ((own_data *)user)->destroyed++;
}

static void callbacks_are_checked(void **state) {
    (void)state;
    own_data own = {0};
    tr_error err = {0};
    tr_dataset *dataset = NULL;
    tr_dataset_source source = {
        .size = sizeof(tr_dataset_source),
        .samples = 5,
        .tensors = {2,
                    {{"pair", TR_ROLE_INPUT, {TR_I32, TR_SHAPE1(2)}},
                     {"class", TR_ROLE_TARGET, {TR_I32, {0}}}}},
        .vocabulary = 10,
        .classes = 3,
        .hash = 77,
        .read = own_read,
        .destroy = own_destroy,
        .user = &own,
    };
    assert_int_equal(tr_dataset_create_callback(&source, &dataset, &err), TR_OK);
    assert_true(tr_dataset_hash(dataset) == 77);
    int64_t index = 4;
    int32_t input[2], target;
    assert_int_equal(
        tr_dataset_read(dataset, &index, 1, (void *[]){input, &target}, &err), TR_OK);
    assert_int_equal(input[0], 4);
    own.bad_input = 1;
    scratch_refuse_read(dataset, 4, TR_DATA,
                        "sample 4: pair: 10 at element 1 is not in [0, 10)");
    own.bad_input = 0;
    own.bad_target = 1;
    scratch_refuse_read(dataset, 2, TR_DATA, "sample 2: class: -1 at element 0");
    own.status = TR_IO;
    scratch_refuse_read(dataset, 2, TR_IO, "callback: reading failed");
    tr_dataset_destroy(dataset);
    assert_int_equal(own.destroyed, 1);

    tr_dataset_source bad = source;
    bad.samples = 0;
    assert_int_equal(tr_dataset_create_callback(&bad, &dataset, NULL), TR_USAGE);
    bad = source;
    bad.tensors.tensor[1].desc.dtype = TR_F64;
    assert_int_equal(tr_dataset_create_callback(&bad, &dataset, NULL), TR_USAGE);
    bad = source;
    bad.tensors.tensor[0].desc.shape = TR_SHAPE2(TR_BATCH, 2);
    assert_int_equal(tr_dataset_create_callback(&bad, &dataset, NULL), TR_USAGE);
    bad = source;
    bad.samples = INT64_MAX;
    assert_int_equal(tr_dataset_create_callback(&bad, &dataset, NULL), TR_USAGE);
    bad = source;
    bad.read = NULL;
    assert_int_equal(tr_dataset_create_callback(&bad, &dataset, NULL), TR_USAGE);
    assert_null(dataset);
    for (int64_t nth = 1; nth <= 3; nth++) {
        tr__memory_fail_at(nth);
        assert_int_equal(tr_dataset_create_callback(&source, &dataset, NULL),
                         TR_MEMORY);
    }
    tr__memory_fail_at(0);
    assert_int_equal(own.destroyed, 1); // a failed one stays the caller's
}

// ---- memory that fails

// Fails the first, second, ... request for memory until opening needs no more of them.
static void fail_each(const tr_data_options *options) {
    for (int64_t nth = 1;; nth++) {
        tr_error err = {0};
        tr_dataset *train, *validation;
        tr__memory_fail_at(nth);
        int64_t before = tr__memory_calls();
        tr_status status = tr_dataset_open(options, &train, &validation, &err);
        bool reached = tr__memory_calls() >= before + nth;
        tr__memory_fail_at(0);
        if (!reached) {
            assert_int_equal(status, TR_OK);
            assert_true(nth > 3);
        } else if (status != TR_OK) { // giving memory back may fail without harm
            assert_int_equal(status, TR_MEMORY);
            assert_true(err.message[0] != '\0');
        }
        tr_dataset_destroy(train);
        tr_dataset_destroy(validation);
        if (!reached) {
            return;
        }
    }
}

static void memory_that_fails_is_survived(void **state) {
    char t[SCRATCH_PATH_MAX], f[SCRATCH_PATH_MAX], l[SCRATCH_PATH_MAX];
    const int16_t masks[12] = {0};
    const float data[] = {1, 2};
    const uint8_t labels[] = {1, 0};
    const char *paths[] = {scratch_text(t, state, "t", "1,2,0\n3,4,1\n")};
    const char *folder[] = {*state};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "bytes",
                               .paths = folder,
                               .path_count = 1,
                               .sequence_length = 1,
                               .validation_fraction = 0.5};
    fail_each(&options);
    options.paths = paths;
    options.labels = scratch_file(l, state, "l", masks, sizeof masks);
    fail_each(&options);
    options = (tr_data_options){.size = sizeof(tr_data_options),
                                .format = "csv",
                                .paths = paths,
                                .path_count = 1,
                                .validation_fraction = 0.5};
    fail_each(&options);
    paths[0] =
        scratch_npy(f, state, "f.npy",
                    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data, 8);
    options.format = "npy";
    options.labels = scratch_npy(
        l, state, "l.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}",
        labels, 2);
    fail_each(&options);
    options = random_options(10, 2, 2);
    options.validation_fraction = 0.5;
    fail_each(&options);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

static const int32_t good_places[] = {0, 1, 2, 0, 0, 1}, *own_places = good_places;

static tr_status read_places(void *user, const int64_t *index, int64_t count,
                             void *const *rows, tr_error *err) {
    (void)user;
    (void)index;
    (void)err;
    memset(rows[0], 0, (size_t)count * sizeof good_places);
    memset(rows[1], 0, (size_t)count * sizeof good_places);
    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)rows[2] + i * (int64_t)sizeof good_places, own_places,
               sizeof good_places);
    }
    return TR_OK;
}

// Kernels look back as far as a place says: one too large would lead before the sample.
static void places_in_documents_are_checked(void **state) {
    (void)state;
    static const int32_t first[] = {1, 2, 3, 0, 1, 2}, jump[] = {0, 1, 3, 4, 5, 6},
                         below[] = {0, -1, 0, 1, 2, 3};
    tr_error err = {0};
    tr_dataset *dataset = NULL;
    int64_t index[2] = {2, 1};
    int32_t ids[12], labels[12], places[12];
    tr_dataset_source source = {.size = sizeof(tr_dataset_source),
                                .samples = 3,
                                .tensors = tr_batch_packed(6),
                                .read = read_places};
    assert_int_equal(tr_dataset_create_callback(&source, &dataset, &err), TR_OK);
    void *rows[] = {ids, labels, places};
    assert_int_equal(tr_dataset_read(dataset, index, 2, rows, &err), TR_OK);
    assert_memory_equal(places + 6, good_places, sizeof good_places);
    own_places = first;
    assert_int_equal(tr_dataset_read(dataset, index, 2, rows, &err), TR_DATA);
    assert_non_null(strstr(err.message, "sample 2: position_ids: 1 at element 0"));
    own_places = jump;
    err = (tr_error){0};
    assert_int_equal(tr_dataset_read(dataset, index + 1, 1, rows, &err), TR_DATA);
    assert_non_null(strstr(err.message, "sample 1: position_ids: 3 at element 2"));
    own_places = below;
    assert_int_equal(tr_dataset_read(dataset, index, 2, rows, &err), TR_DATA);
    own_places = good_places;
    tr_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(random_data_is_what_it_says),
        cmocka_unit_test(random_sizes_are_checked),
        SCRATCH_TEST(text_is_split_at_its_tail),
        SCRATCH_TEST(tables_are_split_evenly),
        SCRATCH_TEST(validation_may_have_its_own_files),
        cmocka_unit_test(callbacks_are_checked),
        cmocka_unit_test(places_in_documents_are_checked),
        SCRATCH_TEST(memory_that_fails_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
