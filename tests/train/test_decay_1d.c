// LARS and LAMB: weight decay of tensors of one dimension, which biases and norms are.
#include "samples.h"
#include "snapshot.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048, STEPS = 6 };

static void run_with(samples *data, const char *type, const char *params,
                     const char *more, snapshot *end) {
    char text[TEXT_MAX];
    trial t;
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 16, 3]}, "
             "\"steps\": %d, \"train_batch_size\": 8, \"out\": \"unused\", "
             "\"optimizer\": {\"type\": \"%s\", \"params\": {\"lr\": 0.05, "
             "\"weight_decay\": 0.5%s}%s}}",
             STEPS, type, params, more);
    trial_open_text(&t, text, data->dataset, NULL);
    trial_steps(&t, STEPS, NULL);
    snapshot_take(end, &t);
    trial_close(&t);
}

static bool same(const snapshot *a, const snapshot *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        const snapshot_tensor *x = &a->tensors[i], *y = &b->tensors[i];
        equal = memcmp(x->part[0], y->part[0], (size_t)x->count * sizeof(float)) == 0;
    }
    return equal;
}

static void decay_of_vectors(void **state) {
    static const char group[] =
        ", \"groups\": [{\"match\": \"*.bias\", \"weight_decay\": 0}]";
    static const char own[] =
        ", \"groups\": [{\"match\": \"*.bias\", \"weight_decay\": 0.25}]";
    static const char *const types[] = {"LARS", "Lamb"};
    samples data;
    (void)state;
    samples_features(&data, 64, 6, 3, 4);
    for (int i = 0; i < 2; i++) {
        snapshot by_default, with, without, grouped, kept, kept_too;
        run_with(&data, types[i], "", "", &by_default);
        run_with(&data, types[i], ", \"decay_1d\": true", "", &with);
        run_with(&data, types[i], ", \"decay_1d\": false", "", &without);
        run_with(&data, types[i], ", \"decay_1d\": true", group, &grouped);
        run_with(&data, types[i], ", \"decay_1d\": true", own, &kept);
        run_with(&data, types[i], ", \"decay_1d\": false", own, &kept_too);
        assert_false(same(&with, &without));
        assert_true(same(&by_default, i == 0 ? &without : &with));
        assert_true(same(&without, &grouped));
        assert_true(same(&kept, &kept_too));
        assert_false(same(&kept, &without));
        snapshot_free(&by_default);
        snapshot_free(&with);
        snapshot_free(&without);
        snapshot_free(&grouped);
        snapshot_free(&kept);
        snapshot_free(&kept_too);
    }
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decay_of_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
