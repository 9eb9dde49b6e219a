#include "data/scratch.h"

#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int scratch_make(void **state) {
    const char *root = getenv("TMPDIR");
    char *folder = NULL;
    if (asprintf(&folder, "%s/tranche-data-XXXXXX", root ? root : "/tmp") < 0) {
        return 1;
    }
    *state = folder;
    return mkdtemp(folder) ? 0 : 1;
}

int scratch_remove(void **state) {
    tr_status status = tr__folder_remove(*state, NULL);
    free(*state);
    return status == TR_OK ? 0 : 1;
}

const char *scratch_path(char *dst, void **state, const char *name) {
    int length = snprintf(dst, SCRATCH_PATH_MAX, "%s/%s", (const char *)*state, name);
    assert_in_range(length, 1, SCRATCH_PATH_MAX - 1);
    return dst;
}

const char *scratch_file(char *dst, void **state, const char *name, const void *data,
                         size_t bytes) {
    FILE *file = fopen(scratch_path(dst, state, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    return dst;
}

const char *scratch_text(char *dst, void **state, const char *name, const char *text) {
    return scratch_file(dst, state, name, text, strlen(text));
}

const char *scratch_npy(char *dst, void **state, const char *name,
                        const char *dictionary, const void *data, size_t bytes) {
    size_t length = strlen(dictionary), total = 10 + length + bytes;
    unsigned char *raw = malloc(total);
    assert_non_null(raw);
    memcpy(raw, "\x93NUMPY\x01\x00", 8);
    raw[8] = (unsigned char)(length & 0xFF);
    raw[9] = (unsigned char)(length >> 8);
    memcpy(raw + 10, dictionary, length);
    if (bytes > 0) {
        memcpy(raw + 10 + length, data, bytes);
    }
    scratch_file(dst, state, name, raw, total);
    free(raw);
    return dst;
}

tr_dataset *scratch_open(const tr_data_options *options) {
    tr_error err = {0};
    tr_dataset *train = NULL, *validation = NULL;
    tr_status status = tr_dataset_open(options, &train, &validation, &err);
    if (status != TR_OK) {
        print_error("%s\n", err.message);
    }
    assert_int_equal(status, TR_OK);
    assert_non_null(train);
    assert_null(validation);
    return train;
}

static void check_message(const tr_error *err, tr_status status, const char *part) {
    if (!strstr(err->message, part)) {
        print_error("'%s' is not in '%s'\n", part, err->message);
    }
    assert_int_equal(err->status, status);
    assert_non_null(strstr(err->message, part));
}

void scratch_refuse(const tr_data_options *options, tr_status status,
                    const char *part) {
    tr_error err = {0};
    tr_dataset *train = NULL, *validation = NULL;
    assert_int_equal(tr_dataset_open(options, &train, &validation, &err), status);
    assert_null(train);
    assert_null(validation);
    check_message(&err, status, part);
}

void scratch_refuse_read(tr_dataset *dataset, int64_t index, tr_status status,
                         const char *part) {
    tr_error err = {0};
    const tr_batch_tensors *tensors = tr_dataset_tensors(dataset);
    void *input = malloc((size_t)tr_tensor_bytes(tensors->tensor[0].desc));
    void *target = malloc((size_t)tr_tensor_bytes(tensors->tensor[1].desc));
    assert_int_equal(
        tr_dataset_read(dataset, &index, 1, (void *[]){input, target}, &err), status);
    check_message(&err, status, part);
    free(input);
    free(target);
}
