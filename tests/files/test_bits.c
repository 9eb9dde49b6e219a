// Tensors in 4 bits as bitsandbytes saves them (two files of the fuzz corpus, which
// bitsandbytes 0.50 has written): one tensor each; and no damage does harm.
#include "files/safetensors/tensor_set.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CORPUS TR_SOURCE_DIR "/tests/fuzz/corpus/safetensors/"

enum { ROWS = 3, COLUMNS = 50, FILE_MOST = 1 << 14 };

static const struct {
    const char *path;
    tr_quantization kind;
} files[] = {{CORPUS "bits.safetensors", TR_QUANTIZED_NF4},
             {CORPUS "bits_double.safetensors", TR_QUANTIZED_NF4_DOUBLE}};

static void each_is_one_tensor(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        tr_error err = {0};
        tr_tensor_set *set = NULL;
        float values[ROWS * COLUMNS], some[7], most = 0;
        assert_int_equal(tr__tensor_set_open(files[f].path, &set, &err), TR_OK);
        assert_int_equal(tr__tensor_set_count(set), 2); // and w2
        const tr_stored_tensor *w = tr__tensor_set_find(set, "w");
        assert_non_null(w);
        assert_int_equal(w->dtype, TR_F32);
        assert_int_equal(w->rank, 2);
        assert_int_equal(w->dim[0], ROWS);
        assert_int_equal(w->dim[1], COLUMNS);
        assert_int_equal(tr__tensor_quantization(set, w), files[f].kind);
        assert_int_equal(tr__tensor_read_f32(set, w, 0, ROWS * COLUMNS, values, &err),
                         TR_OK);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            most = fmaxf(most, fabsf(values[i]));
        }
        assert_true(most > 1.5f && most < 4); // normal numbers
        // A part of them, across blocks, is the same.
        assert_int_equal(tr__tensor_read_f32(set, w, 61, 7, some, &err), TR_OK);
        assert_memory_equal(some, values + 61, sizeof some);
        assert_int_equal(tr__tensor_quantization(set, tr__tensor_set_find(set, "w2")),
                         TR_QUANTIZED_NOT);
        tr__tensor_set_close(set);
    }
}

static void try_damaged(const char *path) {
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    float values[16];
    tr_status status = tr__tensor_set_open(path, &set, &err);
    assert_true(status == TR_OK || status == TR_IO);
    for (size_t i = 0; status == TR_OK && i < tr__tensor_set_count(set); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set, i);
        tr__tensor_read_f32(set, tensor, 0, tensor->count < 16 ? tensor->count : 16,
                            values, &err);
    }
    tr__tensor_set_close(set);
}

static void damage_does_no_harm(void **state) {
    char path[] = "/tmp/tranche-bits-XXXXXX";
    static char bytes[FILE_MOST];
    int descriptor = mkstemp(path);
    (void)state;
    assert_true(descriptor >= 0);
    for (int f = 0; f < 2; f++) {
        FILE *from = fopen(files[f].path, "rb");
        assert_non_null(from);
        size_t count = fread(bytes, 1, FILE_MOST, from);
        fclose(from);
        assert_int_equal(ftruncate(descriptor, 0), 0);
        assert_int_equal(pwrite(descriptor, bytes, count, 0), (ssize_t)count);
        for (size_t i = 0; i < count; i++) {
            const char other[] = {(char)(bytes[i] ^ 1), (char)(bytes[i] + 0x30), 0};
            for (int k = 0; k < 3; k++) {
                assert_int_equal(pwrite(descriptor, &other[k], 1, (off_t)i), 1);
                try_damaged(path);
            }
            assert_int_equal(pwrite(descriptor, &bytes[i], 1, (off_t)i), 1);
        }
    }
    close(descriptor);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_one_tensor),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
