// BERT and RoBERTa from the keys of a config.json.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "models/models.h"

#include <string.h>

static tr_status from(const char *text, bool strict, tr_model **out, tr_error *err) {
    json_t *keys = json_loads(text, 0, NULL);
    assert_non_null(keys);
    tr_status status = tr__model_from_json(keys, "run.json:3: model", strict, out, err);
    json_decref(keys);
    return status;
}

static tr_model *made(const char *text) {
    tr_error err = {0};
    tr_model *model = NULL;
    if (from(text, true, &model, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

// Hugging Face's defaults, and what its own config.json comes to again.
static void keys_are_hugging_faces(void **state) {
    static const struct {
        const char *type;
        int vocabulary, positions, padding;
    } types[] = {{"bert", 30522, 512, 0}, {"roberta", 50265, 510, 1}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", types[i].type);
        tr_model *model = made(text);
        json_t *config = json_loads(model->config_json, 0, NULL);
        assert_int_equal(model->classes, types[i].vocabulary);
        assert_int_equal(model->unit_count, 14);
        assert_int_equal(model->embedding_width, 0);
        assert_int_equal(tr__model_positions(model), types[i].positions);
        assert_int_equal(tr__model_types(model), 2);
        assert_int_equal(json_integer_value(json_object_get(config, "pad_token_id")),
                         types[i].padding);
        tr_model *again = made(model->config_json);
        assert_string_equal(again->config_json, model->config_json);
        tr_model_destroy(again);
        tr_model_destroy(model);
        json_decref(config);
    }
}

// Rows of 64 tokens have a label for every 8 of them where texts share them, else one.
static void rows_have_labels_for_texts(void **state) {
    (void)state;
    tr_model *model = made("{\"model_type\": \"bert\"}");
    const tr_task_settings embeds = {.task = TR_TASK_CONTRASTIVE};
    tr_error err = {0};
    assert_int_equal(tr__model_set_task(model, &embeds, &err), TR_OK);
    assert_int_equal(model->embedding_width, 768);
    for (int packed = 0; packed < 2; packed++) {
        tr__model_set_length(model, 64, packed);
        assert_int_equal(tr_model_targets(model), packed ? 8 : 1);
        assert_int_equal(tr_batch_input(&model->batch)->desc.shape.dim[0], 64);
        assert_non_null(tr_batch_positions(&model->batch));
    }
    tr__model_set_length(model, 5, true);
    assert_int_equal(tr_model_targets(model), 1);
    tr_model_destroy(model);
}

static void task_is_that_of_the_class(void **state) {
    static const struct {
        const char *class;
        tr_model_task task;
    } classes[] = {{"BertModel", TR_TASK_CONTRASTIVE},
                   {"BertForMaskedLM", TR_TASK_MASKED_LM},
                   {"BertForPreTraining", TR_TASK_MASKED_LM},
                   {"BertForSequenceClassification", TR_TASK_CLASSIFICATION}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char text[128];
        tr_error err = {0};
        snprintf(text, sizeof text,
                 "{\"model_type\": \"bert\", \"architectures\": [\"%s\"]}",
                 classes[i].class);
        tr_model *model = made(text);
        assert_int_equal(tr__model_task(model), classes[i].task);
        char *names[] = {"no", "yes"};
        tr_task_settings settings = {.task = classes[i].task};
        settings.labels = (tr_task_labels){TR_LABELS_CLASS, 2, names};
        assert_int_equal(tr__model_set_task(model, &settings, &err), TR_OK);
        bool labels = classes[i].task == TR_TASK_CLASSIFICATION;
        assert_int_equal(model->labels, labels ? 2 : 0);
        assert_true(!labels || strcmp(model->label_names[1], "yes") == 0);
        assert_true(!labels || strstr(model->config_json, "\"yes\": 1"));
        tr_model_destroy(model);
    }
}

static void no_causal_encoder(void **state) {
    const tr_task_settings causal = {.task = TR_TASK_CAUSAL_LM};
    const tr_task_settings masked = {.task = TR_TASK_MASKED_LM};
    tr_error err = {0};
    (void)state;
    tr_model *model = made("{\"model_type\": \"bert\"}");
    assert_int_equal(tr__model_set_task(model, &causal, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "see those behind them"));
    tr_model_destroy(model);
    err = (tr_error){0};
    model = made("{\"model_type\": \"gpt2\"}");
    assert_int_equal(tr__model_set_task(model, &masked, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "see only those before them"));
    tr_model_destroy(model);
}

static void refuses(const char *keys, const char *says) {
    char text[256];
    tr_error err = {0};
    tr_model *model = NULL;
    snprintf(text, sizeof text, "{\"model_type\": \"bert\", %s}", keys);
    assert_int_equal(from(text, true, &model, &err), TR_USAGE);
    if (!strstr(err.message, says) || !strstr(err.message, "run.json:3")) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    }
}

static void bad_keys(void **state) {
    (void)state;
    refuses("\"hidden_size\": 10", "num_attention_heads 12");
    refuses("\"hidden_sise\": 10", "did you mean \"hidden_size\"");
    refuses("\"hidden_size\": \"10\"", "must be a whole number");
    refuses("\"hidden_act\": \"relu\"", "hidden_act \"relu\"");
    refuses("\"position_embedding_type\": \"relative_key\"", "position_embedding_type");
    refuses("\"is_decoder\": true", "is_decoder");
    refuses("\"add_cross_attention\": true", "add_cross_attention");
    refuses("\"layer_norm_eps\": 2", "layer_norm_eps");
}

static void positions_behind_padding(void **state) {
    tr_error err = {0};
    tr_model *model = NULL;
    (void)state;
    assert_int_equal(from("{\"model_type\": \"roberta\", \"max_position_embeddings\": "
                          "2, \"pad_token_id\": 1}",
                          true, &model, &err),
                     TR_USAGE);
    assert_non_null(strstr(err.message, "pad_token_id + 1 = 2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_hugging_faces),
        cmocka_unit_test(rows_have_labels_for_texts),
        cmocka_unit_test(task_is_that_of_the_class),
        cmocka_unit_test(no_causal_encoder),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(positions_behind_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
