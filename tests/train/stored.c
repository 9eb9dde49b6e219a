#include "stored.h"

#include "trial.h"

#include <tranche/checkpoint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *stored_latest(const char *out, char folder[PATH_MAX]) {
    tr_error err = {0};
    trial_ok(tr_checkpoint_locate(out, folder, PATH_MAX, &err), &err);
    return folder;
}

static void *room(int64_t count, size_t bytes) {
    void *memory = calloc((size_t)count, bytes);
    assert_non_null(memory);
    return memory;
}

static void read_i64(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                     double *values) {
    tr_error err = {0};
    int64_t *raw = room(tensor->count, sizeof *raw);
    trial_ok(tr__tensor_read(set, tensor, 0, tensor->count, raw, &err), &err);
    for (int64_t i = 0; i < tensor->count; i++) {
        values[i] = (double)raw[i];
    }
    free(raw);
}

static void read_f32(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                     double *values) {
    tr_error err = {0};
    float *raw = room(tensor->count, sizeof *raw);
    trial_ok(tr__tensor_read_f32(set, tensor, 0, tensor->count, raw, &err), &err);
    for (int64_t i = 0; i < tensor->count; i++) {
        values[i] = raw[i];
    }
    free(raw);
}

double *stored_values(const tr_tensor_set *set, const char *name, int64_t count) {
    const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
    double *values = room(count, sizeof *values);
    assert_true(tensor && tensor->count == count);
    if (tensor->dtype == TR_I64) {
        read_i64(set, tensor, values);
    } else {
        read_f32(set, tensor, values);
    }
    return values;
}

static double distance(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double apart = b ? a[i] - b[i] : a[i];
        sum += apart * apart;
    }
    return sqrt(sum);
}

// set: start, want, got.
static void assert_tensor_close(tr_tensor_set *const set[3], size_t index,
                                double tolerance, double rounding) {
    const tr_stored_tensor *tensor = tr__tensor_set_at(set[1], index);
    double *v[3];
    for (int k = 0; k < 3; k++) {
        v[k] = stored_values(set[k], tensor->name, tensor->count);
    }
    double apart = distance(v[2], v[1], tensor->count);
    double way = distance(v[1], v[0], tensor->count);
    double norm = distance(v[1], NULL, tensor->count);
    if (!(way > 0 && apart <= tolerance * way + rounding * norm)) {
        fail_msg("%s is %g off after a way of %g, its norm being %g", tensor->name,
                 apart, way, norm);
    }
    for (int k = 0; k < 3; k++) {
        free(v[k]);
    }
}

void stored_assert_close(const char *start, const char *want, const char *got,
                         double tolerance, double rounding) {
    const char *paths[] = {start, want, got};
    tr_tensor_set *set[3];
    tr_error err = {0};
    for (int i = 0; i < 3; i++) {
        trial_ok(tr__tensor_set_open(paths[i], &set[i], &err), &err);
    }
    assert_int_equal(tr__tensor_set_count(set[1]), tr__tensor_set_count(set[2]));
    for (size_t i = 0; i < tr__tensor_set_count(set[1]); i++) {
        assert_tensor_close(set, i, tolerance, rounding);
    }
    for (int i = 0; i < 3; i++) {
        tr__tensor_set_close(set[i]);
    }
}

double stored_distance(const char *a, const char *b) {
    const char *paths[] = {a, b};
    tr_tensor_set *set[2];
    tr_error err = {0};
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        trial_ok(tr__tensor_set_open(paths[i], &set[i], &err), &err);
    }
    for (size_t i = 0; i < tr__tensor_set_count(set[0]); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set[0], i);
        double *v[2];
        for (int k = 0; k < 2; k++) {
            v[k] = stored_values(set[k], tensor->name, tensor->count);
        }
        sum += pow(distance(v[0], v[1], tensor->count), 2);
        free(v[0]);
        free(v[1]);
    }
    tr__tensor_set_close(set[0]);
    tr__tensor_set_close(set[1]);
    return sqrt(sum);
}

// The whole file, for the caller to free.
static char *read_file(const char *folder, const char *file, size_t *bytes) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(stream);
    char *content = room((int64_t)*bytes + 1, 1);
    rewind(stream);
    assert_int_equal(fread(content, 1, *bytes, stream), *bytes);
    fclose(stream);
    return content;
}

void stored_assert_same(const char *folder_a, const char *folder_b, const char *file) {
    size_t bytes[2];
    char *a = read_file(folder_a, file, &bytes[0]);
    char *b = read_file(folder_b, file, &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(a, b, bytes[0]);
    free(a);
    free(b);
}
