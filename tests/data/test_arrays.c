// Datasets over a program's own arrays.
#include "base/memory.h"

#include <tranche/data.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 5, FEATURES = 3 };

static float features[SAMPLES][FEATURES];
static int64_t labels[SAMPLES];

// "features" F32 [FEATURES], "labels" I64 [].
static tr_batch_tensors list(void) {
    tr_batch_tensors tensors = tr_batch_features(FEATURES);
    tensors.tensor[1].desc.dtype = TR_I64;
    return tensors;
}

static void fill(void) {
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = 10 * i;
        for (int f = 0; f < FEATURES; f++) {
            features[i][f] = (float)(100 * i + f);
        }
    }
}

static tr_dataset *make(void) {
    const tr_batch_tensors tensors = list();
    const void *const arrays[] = {features, labels};
    tr_dataset *data = NULL;
    tr_error err = {0};
    if (tr_dataset_create_arrays(&tensors, SAMPLES, arrays, &data, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return data;
}

static void samples_are_those_of_the_arrays(void **state) {
    const int64_t index[] = {4, 0, 4};
    float x[3][FEATURES];
    int32_t y[3];
    (void)state;
    fill();
    tr_dataset *data = make();
    assert_int_equal(tr_dataset_samples(data), SAMPLES);
    assert_string_equal(tr_dataset_about(data), "5 samples in arrays");
    assert_int_equal(tr_dataset_read(data, index, 3, (void *[]){x, y}, NULL), TR_OK);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(x[i], features[index[i]], sizeof x[i]);
        assert_int_equal(y[i], labels[index[i]]);
    }
    tr_dataset_destroy(data);
}

static void the_hash_is_of_all_elements(void **state) {
    (void)state;
    fill();
    tr_dataset *first = make(), *same = make();
    assert_true(tr_dataset_hash(first) == tr_dataset_hash(same));
    labels[SAMPLES - 1]++;
    tr_dataset *other = make();
    assert_true(tr_dataset_hash(first) != tr_dataset_hash(other));
    tr_dataset_destroy(first);
    tr_dataset_destroy(same);
    tr_dataset_destroy(other);
}

static void what_is_missing_is_named(void **state) {
    tr_batch_tensors tensors = list();
    const void *arrays[] = {features, NULL};
    tr_dataset *data = NULL;
    tr_error err = {0};
    (void)state;
    assert_int_equal(tr_dataset_create_arrays(&tensors, SAMPLES, arrays, &data, &err),
                     TR_USAGE);
    assert_non_null(strstr(err.message, "the array of \"labels\" is NULL"));
    arrays[1] = labels;
    assert_int_equal(tr_dataset_create_arrays(&tensors, 0, arrays, &data, &err),
                     TR_USAGE);
    assert_int_equal(tr_dataset_create_arrays(NULL, SAMPLES, arrays, &data, &err),
                     TR_USAGE);
    assert_int_equal(tr_dataset_create_arrays(&tensors, SAMPLES, NULL, &data, &err),
                     TR_USAGE);
    tensors.tensor[0].desc.shape.dim[0] = -1;
    assert_int_equal(tr_dataset_create_arrays(&tensors, SAMPLES, arrays, &data, &err),
                     TR_USAGE);
    assert_null(data);
}

static void memory_that_fails_is_told(void **state) {
    const tr_batch_tensors tensors = list();
    const void *const arrays[] = {features, labels};
    tr_status status = TR_MEMORY;
    int nth = 1;
    (void)state;
    for (; status != TR_OK; nth++) {
        tr_dataset *data = NULL;
        tr__memory_fail_at(nth);
        status = tr_dataset_create_arrays(&tensors, SAMPLES, arrays, &data, NULL);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || (status == TR_MEMORY && !data));
        tr_dataset_destroy(data);
    }
    assert_true(nth > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_those_of_the_arrays),
        cmocka_unit_test(the_hash_is_of_all_elements),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(memory_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
