// Models from the keys of a config.json, and the config.json that they leave.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "models/models.h"

#include <string.h>

#define SHAPE "\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 8, \"n_head\": 2"

static tr_model *model_from(const char *text, bool strict) {
    tr_error err = {0};
    tr_model *model = NULL;
    json_t *keys = json_loads(text, 0, NULL);
    assert_non_null(keys);
    if (tr__model_from_json(keys, "test", strict, &model, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    json_decref(keys); // the model keeps nothing of it
    return model;
}

static json_t *config_of(const tr_model *model) {
    json_t *config = json_loads(model->config_json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(config);
    return config;
}

static const char told[] =
    "{" SHAPE
    ", \"bos_token_id\": 7, \"eos_token_id\": [8, 9], \"pad_token_id\": null, "
    "\"task_specific_params\": {\"text-generation\": {\"max_length\": 50}}, "
    "\"n_positions\": 16, \"torch_dtype\": \"float16\", \"dtype\": \"bfloat16\", "
    "\"transformers_version\": \"4.0\", \"n_inner\": null}";

// What a user of the model needs stays; what is about the file it came from does not:
// the weights that are saved are f32.
static void keeps_what_others_read(void **state) {
    static const char *const gone[] = {"torch_dtype", "dtype", "transformers_version"};
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        tr_model *model = model_from(told, strict);
        json_t *config = config_of(model), *given = json_loads(told, 0, NULL);
        static const char *const kept[] = {"bos_token_id", "eos_token_id",
                                           "pad_token_id", "task_specific_params",
                                           "n_positions"};
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
            assert_true(json_equal(json_object_get(config, kept[i]),
                                   json_object_get(given, kept[i])));
        }
        for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
            assert_null(json_object_get(config, gone[i]));
        }
        assert_int_equal(json_integer_value(json_object_get(config, "n_inner")), 32);
        json_decref(config);
        json_decref(given);
        tr_model_destroy(model);
    }
}

// The config.json of a model makes the same model again, and the same config.json.
static void round_trip(void **state) {
    static const char *const texts[] = {
        told,
        "{" SHAPE "}",
        "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 23, 4]}",
        "{\"model_type\": \"resnet\", \"depth\": 20}",
        "{\"model_type\": \"resnet\", \"batch_norm\": \"rank_batch\"}",
        "{\"model_type\": \"resnet\", \"depth\": 50, \"width\": 8, \"batch_norm\": "
        "\"micro_batch\", \"shortcut\": \"identity\", \"batch_norm_eps\": 1e-3}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tr_model *model = model_from(texts[i], true);
        tr_model *again = model_from(model->config_json, true);
        json_t *a = config_of(model), *b = config_of(again);
        assert_true(json_equal(a, b));
        json_decref(a);
        json_decref(b);
        tr_model_destroy(model);
        tr_model_destroy(again);
    }
}

static void unknown_keys(void **state) {
    static const char text[] = "{" SHAPE ", \"bos_tokn_id\": 7}";
    tr_error err = {0};
    tr_model *model = NULL;
    json_t *keys = json_loads(text, 0, NULL);
    (void)state;
    assert_int_equal(tr__model_from_json(keys, "test", true, &model, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "did you mean \"bos_token_id\"?"));
    json_decref(keys);
    model = model_from(text, false);
    json_t *config = config_of(model);
    assert_null(json_object_get(config, "bos_tokn_id"));
    json_decref(config);
    tr_model_destroy(model);
}

static void no_memory(void **state) {
    json_t *keys = json_loads(told, 0, NULL);
    tr_status status = TR_MEMORY;
    int refused = 0;
    (void)state;
    for (int64_t nth = 1; status != TR_OK && nth < 100; nth++) {
        tr_error err = {0};
        tr_model *model = NULL;
        tr__memory_fail_at(nth);
        status = tr__model_from_json(keys, "test", true, &model, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || (status == TR_MEMORY && !model));
        refused += status != TR_OK;
        tr_model_destroy(model);
    }
    json_decref(keys);
    assert_true(status == TR_OK && refused >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_others_read),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
