#include "adapter_files.h"

#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

json_t *adapter_golden(const char *model) {
    char path[PATH_MAX];
    json_error_t err;
    snprintf(path, sizeof path, "%s/%s/golden.json", ADAPTERS, model);
    json_t *golden = json_load_file(path, 0, &err);
    if (!golden) {
        fail_msg("%s: %s", path, err.text);
    }
    return golden;
}

static void copy(const char *from, const char *to, bool change) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    int next;
    assert_non_null(in);
    assert_non_null(out);
    for (int c = fgetc(in); c != EOF; c = next) {
        next = fgetc(in);
        fputc(change && next == EOF ? c ^ 1 : c, out);
    }
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

void adapter_copy_base(const char *model, const char *folder) {
    static const char *const names[] = {"config.json", "model.safetensors"};
    assert_int_equal(mkdir(folder, 0777), 0);
    for (int i = 0; i < 2; i++) {
        char from[PATH_MAX], to[PATH_MAX];
        snprintf(from, sizeof from, "%s/%s/base/%s", ADAPTERS, model, names[i]);
        snprintf(to, sizeof to, "%s/%s", folder, names[i]);
        copy(from, to, i == 1);
    }
}

void adapter_sums(const tr_tensor_set *set, const char *name, double *sum,
                  double *squares) {
    const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
    tr_error err = {0};
    if (!tensor) {
        fail_msg("there is no tensor %s", name);
        return;
    }
    float *values = calloc((size_t)tensor->count, sizeof *values);
    assert_non_null(values);
    trial_ok(tr__tensor_read_f32(set, tensor, 0, tensor->count, values, &err), &err);
    *sum = *squares = 0;
    for (int64_t i = 0; i < tensor->count; i++) {
        *sum += (double)values[i];
        *squares += (double)values[i] * (double)values[i];
    }
    free(values);
}

tr_status adapter_try(trial *t, const char *text, const char *resume, tr_error *err) {
    const run_options options = {.text = text, .resume = resume};
    *t = (trial){0};
    tr_status status = run_open(&options, &t->run, err);
    if (status == TR_OK) {
        status = tr_run_make_plan(t->run, &t->plan, err);
    }
    return status == TR_OK ? tr_engine_create(t->run, t->plan, &t->engine, err)
                           : status;
}
