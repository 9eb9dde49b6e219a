#include "golden.h"

#include "files/safetensors/tensor_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void golden_go_to(const char *golden) {
    char path[1024];
    snprintf(path, sizeof path, "%s/goldens/%s", TR_TEST_DATA, golden);
    assert_int_equal(chdir(path), 0);
}

// The file's tensor of a parameter, or of one of its states ("exp_avg"; NULL: values).
static float *read_tensor(const tr_tensor_set *set, const char *parameter,
                          const char *state, int64_t count) {
    tr_error err = {0};
    char name[256];
    snprintf(name, sizeof name, state ? "%s.%s" : "%s", parameter, state);
    const tr_stored_tensor *from = tr__tensor_set_find(set, name);
    assert_true(from && from->count == count);
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    trial_ok(tr__tensor_read_f32(set, from, 0, count, values, &err), &err);
    return values;
}

void golden_read_final(const tr_optimizer *optimizer, const snapshot *like,
                       snapshot *final) {
    tr_error err = {0};
    tr_tensor_set *values = NULL, *states = NULL;
    trial_ok(tr__tensor_set_open("final.safetensors", &values, &err), &err);
    trial_ok(tr__tensor_set_open("optimizer.safetensors", &states, &err), &err);
    assert_int_equal(tr__tensor_set_count(values), like->count);
    *final = (snapshot){.count = like->count};
    final->tensors = calloc(like->count, sizeof *final->tensors);
    assert_non_null(final->tensors);
    for (size_t i = 0; i < like->count; i++) {
        const snapshot_tensor *as = &like->tensors[i];
        snapshot_tensor *to = &final->tensors[i];
        to->name = strdup(as->name);
        to->count = as->count;
        to->part[0] = read_tensor(values, as->name, NULL, as->count);
        for (int p = 1; p < SNAPSHOT_PARTS && as->part[p]; p++) {
            to->part[p] =
                read_tensor(states, as->name, optimizer->states[p - 1].name, as->count);
        }
    }
    tr__tensor_set_close(values);
    tr__tensor_set_close(states);
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

void golden_check_step(const char *golden, const tr_step_result *r,
                       const json_t *expected) {
    double loss = number(expected, "loss"), lr = number(expected, "lr");
    double norm = number(expected, "grad_norm");
    if (!(fabs(r->loss - loss) <= 1e-5) || !(fabs(r->grad_norm / norm - 1) <= 1e-5) ||
        !(fabs(r->lr - lr) <= 1e-12 * lr)) {
        fail_msg("%s, step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g, rate "
                 "%.9g for %.9g",
                 golden, (int)r->step, r->loss, loss, r->grad_norm, norm, r->lr, lr);
    }
    assert_true(r->targets == number(expected, "count"));
    assert_false(r->skipped);
}
