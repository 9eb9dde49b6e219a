// Format csv: what is read, and where it says a table is wrong.
#include "data/scratch.h"
#include "data/sources/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Opens a table of this text.
static tr_dataset *open_text(void **state, const char *text, const char *column) {
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(path, state, "t.csv", text)};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1,
                               .label_column = column};
    return scratch_open(&options);
}

static void refuse_text(void **state, const char *text, const char *part) {
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(path, state, "t.csv", text)};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1,
                               .classes = 3};
    scratch_refuse(&options, TR_DATA, part);
}

// Reads all samples, in order; features: [rows, width].
static void expect_rows(tr_dataset *dataset, int64_t rows, int64_t width,
                        const float *features, const int32_t *labels) {
    int64_t index[16];
    float input[64];
    int32_t target[16];
    const tr_batch_tensor *sample = tr_dataset_tensors(dataset)->tensor;
    assert_int_equal(tr_dataset_samples(dataset), rows);
    assert_int_equal(sample[0].desc.dtype, TR_F32);
    assert_true(tr_shape_equal(sample[0].desc.shape, TR_SHAPE1(width)));
    assert_int_equal(sample[1].desc.shape.rank, 0);
    for (int64_t i = 0; i < rows; i++) {
        index[i] = i;
    }
    assert_int_equal(
        tr_dataset_read(dataset, index, rows, (void *[]){input, target}, NULL), TR_OK);
    assert_memory_equal(input, features, (size_t)(rows * width) * sizeof *input);
    assert_memory_equal(target, labels, (size_t)rows * sizeof *target);
    tr_dataset_destroy(dataset);
}

static void tables_are_read(void **state) {
    const float features[] = {1.5f, -2, 3e-3f, 4};
    const int32_t labels[] = {0, 2};
    const char *const texts[] = {
        "1.5,-2,0\n0.003,4,2\n",
        "x,y,label\n1.5,-2,0\n0.003,4,2\n",
        "\xEF\xBB\xBFx,y,label\r\n1.5,-2,0\r\n\r\n3e-3,+4.,2.0",
        "\"a \"\"b\"\", c\nd\",y,label\n\"1.5\",\" -2 \",0\n\n\n.003, 4 ,\"2\"\r\n\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_rows(open_text(state, texts[i], NULL), 2, 2, features, labels);
    }
}

static void the_label_may_be_any_column(void **state) {
    const float features[] = {1, 2, 3, 4};
    const int32_t labels[] = {7, -100};
    expect_rows(open_text(state, "x,class,y\n1,7,2\n3,-100,4\n", "class"), 2, 2,
                features, labels);
    expect_rows(open_text(state, "x,class,y\n1,7,2\n3,-100,4\n", "1"), 2, 2, features,
                labels);
    expect_rows(open_text(state, "7,1,2\n-100,3,4\n", "0"), 2, 2, features, labels);
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {
        scratch_text(path, state, "t.csv", "x,class,y\n1,7,2\n")};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1,
                               .label_column = "clas"};
    scratch_refuse(&options, TR_DATA,
                   "no column 'clas' (data.label_column), did you mean 'class'?");
    options.label_column = "3";
    scratch_refuse(&options, TR_DATA, "or a number from 0 to 2");
    options.label_column = "-1";
    scratch_refuse(&options, TR_DATA, "no column '-1'");
}

static tr_data_options table_options(const char *const *paths, size_t count) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "csv",
                             .paths = paths,
                             .path_count = count};
}

static void a_header_has_no_number(void **state) {
    const float features[] = {1.5f, -2, 3e-3f, 4};
    const int32_t labels[] = {0, 2};
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {
        scratch_text(path, state, "t.csv", "0,1,label\n1.5,-2,0\n0.003,4,2\n")};
    tr_data_options options = table_options(paths, 1);
    scratch_refuse(&options, TR_DATA,
                   "t.csv:1:3: 'label' is not a number; correct it or leave the row "
                   "out, or, if this line is a header, set data.header to true");
    options.header = TR_HEADER_YES;
    expect_rows(scratch_open(&options), 2, 2, features, labels);
    // A typo in the first row of a table without a header does not hide the row.
    scratch_text(path, state, "t.csv", "1.5,x2,0\n0.003,4,2\n");
    options.header = TR_HEADER_AUTO;
    scratch_refuse(&options, TR_DATA, "t.csv:1:2: 'x2' is not a number");
    scratch_text(path, state, "t.csv", "x,y,label\n1.5,-2,0\n");
    options.header = TR_HEADER_NO;
    scratch_refuse(&options, TR_DATA,
                   "t.csv:1:1: 'x' is not a number; correct it or "
                   "leave the row out");
    scratch_text(path, state, "t.csv", "1,2,3\n1.5,-2,0\n0.003,4,2\n");
    options.header = TR_HEADER_YES;
    expect_rows(scratch_open(&options), 2, 2, features, labels);
    scratch_text(path, state, "t.csv", ",,\n1.5,-2,0\n");
    options.header = TR_HEADER_AUTO;
    scratch_refuse(&options, TR_DATA, "t.csv:1:1: '' is not a number");
    options.format = "bytes";
    options.header = TR_HEADER_NO;
    scratch_refuse(&options, TR_USAGE, "data.header: has no meaning for format bytes");
}

// The first file's header gives the order; the others', also those of validation, are
// matched with it by name.
static void columns_are_matched_by_name(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], v[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(a, state, "a.csv", "x,y,label\n1,2,0\n"),
                                 scratch_text(b, state, "b.csv", "label,x,y\n1,3,4\n")};
    const char *const held[] = {scratch_text(v, state, "v.csv", "y,label,x\n6,1,2\n")};
    const float features[] = {1, 2, 3, 4}, other[] = {2, 6};
    const int32_t labels[] = {0, 1};
    tr_data_options options = table_options(paths, 2);
    options.validation_paths = held;
    options.validation_path_count = 1;
    tr_dataset *train, *validation;
    assert_int_equal(tr_dataset_open(&options, &train, &validation, NULL), TR_OK);
    expect_rows(train, 2, 2, features, labels);
    expect_rows(validation, 1, 2, other, labels + 1);
    options.label_column = "0"; // of the first file: x
    assert_int_equal(tr_dataset_open(&options, &train, &validation, NULL), TR_OK);
    expect_rows(train, 2, 2, (const float[]){2, 0, 4, 1}, (const int32_t[]){1, 3});
    tr_dataset_destroy(validation);
    // A value at fault is placed as the file has it.
    scratch_text(b, state, "b.csv", "label,x,y\n1,3,z\n");
    scratch_refuse(&options, TR_DATA, "b.csv:2:3: 'z' is not a number");
}

static void other_columns_are_refused(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(a, state, "a.csv", "x,y,label\n1,2,0\n"),
                                 scratch_text(b, state, "b.csv", "x,z,label\n1,2,0\n")};
    tr_data_options options = table_options(paths, 2);
    scratch_refuse(&options, TR_DATA, "b.csv:1:2: a column 'z', which ");
    scratch_text(b, state, "b.csv", "label,x,x\n1,2,0\n");
    scratch_refuse(&options, TR_DATA, "b.csv:1:3: a second column 'x'");
    scratch_text(b, state, "b.csv", "x,label\n1,2\n");
    scratch_refuse(&options, TR_DATA, "b.csv:1: 2 columns where ");
    scratch_text(b, state, "b.csv", "1,2,0\n");
    scratch_refuse(&options, TR_DATA, "b.csv:1: no header, but ");
    scratch_text(a, state, "a.csv", "1,2,0\n");
    scratch_text(b, state, "b.csv", "x,y,label\n1,2,0\n");
    scratch_refuse(&options, TR_DATA, "b.csv:1: a header, but ");
    // Names that a file has twice are no matter as long as all have one order.
    scratch_text(a, state, "a.csv", "x,x,label\n1,2,0\n");
    scratch_text(b, state, "b.csv", "x,x,label\n3,4,0\n");
    expect_rows(scratch_open(&options), 2, 2, (const float[]){1, 2, 3, 4},
                (const int32_t[]){0, 0});
}

static void several_files_are_one_table(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(a, state, "a.csv", "x,l\n1,0\n"),
                                 scratch_text(b, state, "b.csv", "x,l\n2,1\n3,1\n")};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 2};
    const float features[] = {1, 2, 3};
    const int32_t labels[] = {0, 1, 1};
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_classes(dataset), 2);
    assert_true(tr_dataset_bytes(dataset) >= 3 * 8);
    assert_true(tr_dataset_bytes(dataset) < 3 * 8 + 256);
    expect_rows(dataset, 3, 1, features, labels);
}

static void wrong_tables_are_placed(void **state) {
    refuse_text(state, "1,2,0\n1,nan,0\n", "t.csv:2:2: 'nan' is not a finite f32");
    refuse_text(state, "NaN,2,0\n", "t.csv:1:1: 'NaN' is not a finite");
    refuse_text(state, "1,2,0\n1,-inf,0\n", "t.csv:2:2: '-inf' is not a finite");
    refuse_text(state, "1,2,0\n1,1e39,0\n", "t.csv:2:2: '1e39' is not a finite");
    refuse_text(state, "a,b,c\n1,2,0\n\n1,x%n,0\n", "t.csv:4:2: 'x%n' is not a number");
    refuse_text(state, "1,,0\n", "t.csv:1:2: '' is not a number");
    refuse_text(state, "1,2x,0\n", "t.csv:1:2: '2x' is not a number");
    refuse_text(state, "1,0x10,0\n", "t.csv:1:2: '0x10' is not a number");
    refuse_text(state, "1,2,0\n1,2,3\n", "t.csv:2:3: '3' is no label in [0, 3)");
    refuse_text(state, "1,2,-1\n", "t.csv:1:3: '-1' is no label in [0, 3)");
    refuse_text(state, "1,2,1e300\n", "t.csv:1:3: '1e300' is not a finite");
    refuse_text(state, "1,2,0.5\n", "t.csv:1:3: '0.5' is no whole number");
    refuse_text(state, "1,2,0\n1,2\n", "t.csv:2: 2 columns where the first row has 3");
    refuse_text(state, "1\n", "t.csv:1: one column only");
    refuse_text(state, "", "no rows in data.train");
    refuse_text(state, "\n\r\n\n", "no rows in data.train");
    refuse_text(state, "x,y,label\n", "no rows in data.train");
    refuse_text(state, "1,2,0\n\"1,2,0\n1,2,0\n",
                "t.csv:2: a quote that is opened in this record is never closed");
    refuse_text(state, "x,y,label\r1,2,0\r1,2,1\r",
                "t.csv:1: a carriage return that ends no line");
    refuse_text(state, "1,2,0\r1,2,1", "t.csv:1: a carriage return that ends no line");
    refuse_text(state, "\"1\"2,2,0\n", "t.csv:1: text after the closing quote");
}

static void zero_bytes_are_no_text(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_file(path, state, "t.csv", "1,2\n1\0,2\n", 9)};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1};
    scratch_refuse(&options, TR_DATA, "t.csv:2: a zero byte");
}

static void the_model_has_its_say(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *const paths[] = {scratch_text(path, state, "t.csv", "1,2,0\n")};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1,
                               .features = 3};
    scratch_refuse(&options, TR_DATA, "2 features in a row, but data.features is 3");
    options.labels = path;
    scratch_refuse(&options, TR_USAGE, "data.labels: has no meaning for format csv");
}

// Records over the edge of the reader's buffer, and of a good many columns.
static void large_tables_are_read(void **state) {
    enum { ROWS = 500, WIDTH = 60 };
    char path[SCRATCH_PATH_MAX];
    size_t bytes = 0, room = (size_t)ROWS * (WIDTH + 1) * 16;
    char *text = malloc(room);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < WIDTH; c++) {
            bytes +=
                (size_t)snprintf(text + bytes, room - bytes, "%d.25,", r * 100 + c);
        }
        bytes += (size_t)snprintf(text + bytes, room - bytes, "%d\n", r % 7);
    }
    const char *const paths[] = {scratch_file(path, state, "t.csv", text, bytes)};
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = paths,
                               .path_count = 1};
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), ROWS);
    assert_int_equal(tr_dataset_classes(dataset), 7);
    float input[WIDTH];
    int32_t target;
    for (int64_t r = 0; r < ROWS; r++) {
        assert_int_equal(
            tr_dataset_read(dataset, &r, 1, (void *[]){input, &target}, NULL), TR_OK);
        assert_int_equal(target, r % 7);
        for (int c = 0; c < WIDTH; c++) {
            assert_true(input[c] == (float)(r * 100 + c) + 0.25f);
        }
    }
    tr_dataset_destroy(dataset);
    free(text);
}

static void numbers_are_decimal(void **state) {
    double value = 0;
    (void)state;
    assert_int_equal(tr__number_parse(" -1.5e2\t", &value), TR_NUMBER_FINITE);
    assert_true(value == -150);
    const char *const none[] = {"",    " ",   "1 2",  "e",    "1e",
                                "--1", "0x1", "nano", "infin"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(tr__number_parse(none[i], &value), TR_NUMBER_NONE);
    }
    const char *const infinite[] = {"nan", "-NaN", "inf", "+Infinity", "1e999", "4e38"};
    for (size_t i = 0; i < sizeof infinite / sizeof *infinite; i++) {
        assert_int_equal(tr__number_parse(infinite[i], &value), TR_NUMBER_INFINITE);
    }
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(tables_are_read),
        SCRATCH_TEST(the_label_may_be_any_column),
        SCRATCH_TEST(a_header_has_no_number),
        SCRATCH_TEST(columns_are_matched_by_name),
        SCRATCH_TEST(other_columns_are_refused),
        SCRATCH_TEST(several_files_are_one_table),
        SCRATCH_TEST(wrong_tables_are_placed),
        SCRATCH_TEST(zero_bytes_are_no_text),
        SCRATCH_TEST(the_model_has_its_say),
        SCRATCH_TEST(large_tables_are_read),
        cmocka_unit_test(numbers_are_decimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
