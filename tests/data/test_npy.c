// Format npy: element types, and headers that lie.
#include "data/scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char labels_header[] =
    "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
static const int32_t two_labels[] = {1, 0};

typedef struct npy_pair {
    char features[SCRATCH_PATH_MAX], labels[SCRATCH_PATH_MAX];
    const char *paths[1];
    tr_data_options options;
} npy_pair;

// Two files of two samples: features as given, labels 1 and 0.
static void make_pair(npy_pair *pair, void **state, const char *dictionary,
                      const void *data, size_t bytes) {
    pair->paths[0] =
        scratch_npy(pair->features, state, "x.npy", dictionary, data, bytes);
    pair->options = (tr_data_options){
        .size = sizeof(tr_data_options),
        .format = "npy",
        .paths = pair->paths,
        .path_count = 1,
        .labels = scratch_npy(pair->labels, state, "y.npy", labels_header, two_labels,
                              sizeof two_labels),
    };
}

static void expect_pair(const npy_pair *pair, const float *want, int64_t width) {
    const int64_t index[] = {0, 1};
    float input[16];
    int32_t target[2];
    tr_dataset *dataset = scratch_open(&pair->options);
    assert_int_equal(tr_dataset_samples(dataset), 2);
    assert_int_equal(tr_dataset_classes(dataset), 2);
    assert_true(tr_shape_equal(tr_dataset_tensors(dataset)->tensor[0].desc.shape,
                               TR_SHAPE1(width)));
    assert_int_equal(
        tr_dataset_read(dataset, index, 2, (void *[]){input, target}, NULL), TR_OK);
    assert_memory_equal(input, want, (size_t)(2 * width) * sizeof *want);
    assert_memory_equal(target, two_labels, sizeof target);
    tr_dataset_destroy(dataset);
}

static void element_types(void **state) {
    const float f4[] = {1.5f, -2, 3, 4, 5, 6};
    const double f8[] = {1.5, -2, 3, 4, 5, 6};
    const uint8_t u1[] = {0, 255, 3, 4, 5, 6};
    const int64_t i8[] = {-1, 1LL << 40, 3, 4, 5, 6};
    const int32_t i4[] = {-7, 2, 3, 4, 5, 6};
    const float u1_want[] = {0, 255, 3, 4, 5, 6}, i8_want[] = {-1, 0x1p40f, 3, 4, 5, 6},
                i4_want[] = {-7, 2, 3, 4, 5, 6};
    const struct {
        const char *dictionary;
        const void *data;
        size_t bytes;
        const float *want;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", f4,
         sizeof f4, f4},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}\n", f8, sizeof f8,
         f4},
        {"{'shape':(2,3,1),'fortran_order':False,\"descr\":'|u1'}", u1, sizeof u1,
         u1_want},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1, 3), }\n", i8,
         sizeof i8, i8_want},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n", i4, sizeof i4,
         i4_want},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        npy_pair pair;
        make_pair(&pair, state, cases[i].dictionary, cases[i].data, cases[i].bytes);
        expect_pair(&pair, cases[i].want, 3);
    }
}

// Versions 2 and 3 have four bytes of length.
static void later_versions(void **state) {
    const char dictionary[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
    const float data[] = {3, 4};
    unsigned char raw[256];
    for (unsigned char version = 2; version <= 3; version++) {
        npy_pair pair;
        size_t length = sizeof dictionary - 1;
        make_pair(&pair, state, dictionary, data, sizeof data);
        memcpy(raw, "\x93NUMPY", 6);
        raw[6] = version;
        raw[7] = 0;
        raw[8] = (unsigned char)length;
        raw[9] = raw[10] = raw[11] = 0;
        memcpy(raw + 12, dictionary, length);
        memcpy(raw + 12 + length, data, sizeof data);
        scratch_file(pair.features, state, "x.npy", raw, 12 + length + sizeof data);
        expect_pair(&pair, data, 1);
    }
}

static void refuse_header(void **state, const char *dictionary, const char *part) {
    const char zeros[24] = {0};
    npy_pair pair;
    make_pair(&pair, state, dictionary, zeros, sizeof zeros);
    scratch_refuse(&pair.options, TR_DATA, part);
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "

static void headers_that_lie(void **state) {
    const char *const damaged[] = {
        "",
        "{",
        "}",
        "[1, 2]",
        "{'descr': '<f4', 'fortran_order': False}",
        HEAD "(2, 3)",
        HEAD "(2, 3)} x",
        HEAD "(2, 3), 'shape': (2, 3)}",
        HEAD "(2, 3), 'more': 1}",
        HEAD "(2 3)}",
        HEAD "(2,, 3)}",
        HEAD "(2, -3)}",
        HEAD "(6)}",
        HEAD "(2, 3}",
        HEAD "(2, 99999999999999999999)}",
        HEAD "(1,1,1,1,1,1,1,1,6)}",
        "{'descr': <f4, 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4', 'fortran_order': False, "
        "'shape': (2, 3)}",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        refuse_header(state, damaged[i], i == 0 ? "no .npy file" : "no plain array's");
    }
    refuse_header(state, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}",
                  "elements of type '>f4'; save it with array.astype('<f4')");
    refuse_header(state, "{'descr': '%s%n', 'fortran_order': False, 'shape': (2, 3)}",
                  "elements of type '%s%n'");
    refuse_header(state, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                  "numpy.ascontiguousarray");
    refuse_header(state, HEAD "(2, 4)}", "the file is cut short, copy it again");
    refuse_header(state, HEAD "(2, 2)}", "something follows the array");
    refuse_header(state, HEAD "(4611686018427387904, 4)}",
                  "a shape too large to count");
    refuse_header(state, HEAD "(4611686018427387904,)}", "a shape too large to count");
    refuse_header(state, HEAD "(0, 0)}", "something follows the array");
    refuse_header(state, HEAD "(3, 2)}", "2 labels for the 3 samples");
}

// Every cut of a good file is refused, and none reads past its end.
static void truncated_files(void **state) {
    const float data[] = {1, 2};
    npy_pair pair;
    make_pair(&pair, state, HEAD "(2, 1), }\n", data, sizeof data);
    FILE *file = fopen(pair.features, "rb");
    unsigned char raw[256];
    size_t bytes = fread(raw, 1, sizeof raw, file);
    fclose(file);
    for (size_t cut = 0; cut < bytes; cut++) {
        scratch_file(pair.features, state, "x.npy", raw, cut);
        scratch_refuse(&pair.options, TR_DATA, "x.npy");
    }
    scratch_file(pair.features, state, "x.npy", raw, bytes);
    expect_pair(&pair, data, 1);
}

static void labels_are_checked(void **state) {
    const float data[] = {1, 2};
    const int64_t wide[] = {1, 1LL << 32}, negative[] = {-100, -1};
    npy_pair pair;
    make_pair(&pair, state, HEAD "(2, 1), }\n", data, sizeof data);
    pair.options.classes = 1;
    scratch_refuse(&pair.options, TR_DATA, "y.npy: label 1 at position 0");
    pair.options.classes = 0;
    scratch_npy(pair.labels, state, "y.npy",
                "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", wide,
                sizeof wide);
    scratch_refuse(&pair.options, TR_DATA, "y.npy: label 4294967296 at position 1");
    scratch_npy(pair.labels, state, "y.npy",
                "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", negative,
                sizeof negative);
    scratch_refuse(&pair.options, TR_DATA, "y.npy: label -1 at position 1");
    scratch_npy(pair.labels, state, "y.npy", HEAD "(2,)}", data, sizeof data);
    scratch_refuse(&pair.options, TR_DATA, "labels are one dimension of integers");
    scratch_npy(pair.labels, state, "y.npy",
                "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }",
                two_labels, sizeof two_labels);
    scratch_refuse(&pair.options, TR_DATA, "labels are one dimension of integers");
    scratch_npy(pair.labels, state, "y.npy",
                "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", two_labels,
                4);
    scratch_refuse(&pair.options, TR_DATA, "1 labels for the 2 samples");
    pair.options.labels = NULL;
    scratch_refuse(&pair.options, TR_USAGE, "data.labels: format npy needs a file");
    pair.options.labels = "/nonexistent/%s";
    scratch_refuse(&pair.options, TR_DATA, "/nonexistent/%s: cannot open");
}

static void features_are_finite(void **state) {
    const float data[] = {1, 2, 3, NAN};
    const double large[] = {1, 1e39, 1, 1};
    npy_pair pair;
    make_pair(&pair, state, HEAD "(2, 2)}", data, sizeof data);
    tr_dataset *dataset = scratch_open(&pair.options);
    scratch_refuse_read(dataset, 1, TR_DATA,
                        "x.npy: feature 1 of sample 1 is not a finite f32 number");
    tr_dataset_destroy(dataset);
    make_pair(&pair, state, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}",
              large, sizeof large);
    dataset = scratch_open(&pair.options);
    scratch_refuse_read(dataset, 0, TR_DATA, "feature 1 of sample 0");
    tr_dataset_destroy(dataset);
    pair.options.features = 3;
    scratch_refuse(&pair.options, TR_DATA,
                   "2 features in a row, but data.features is 3");
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(element_types),      SCRATCH_TEST(later_versions),
        SCRATCH_TEST(headers_that_lie),   SCRATCH_TEST(truncated_files),
        SCRATCH_TEST(labels_are_checked), SCRATCH_TEST(features_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
