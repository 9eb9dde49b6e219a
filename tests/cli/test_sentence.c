// What checkpoints of models that make embeddings have for sentence-transformers. That
// it loads them: tools/compare_sentences.py.
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = TR_TEST_DATA "/goldens/bert-pairs";

static void write_run(void *const *state) {
    char text[4096];
    snprintf(text, sizeof text,
             "{\"model\": \"%s/initial\", \"task\": \"contrastive\", "
             "\"data\": {\"format\": \"jsonl\", \"train\": [\"%s/records.jsonl\"], "
             "\"tokenizer\": \"" TR_TEST_DATA "/encoders/bert/tokenizer.json\", "
             "\"max_length\": 24}, \"train_batch_size\": 6, \"steps\": 2, "
             "\"contrastive\": {\"learned\": true}, \"out\": \"out\"}",
             folder, folder);
    file_text(state, "run.json", text);
}

// pooling: the setting; resume: "never" or "auto".
static void train(void **state, const char *pooling, const char *steps,
                  const char *resume) {
    write_run(state);
    free(succeed(state, LIST("train", "run.json", "--set", pooling, "--steps", steps,
                             "--resume", resume)));
}

static json_t *read_json(void **state, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "out/checkpoints/latest/%s", name);
    char *text = file_read(state, path, NULL);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static void check_modules(void **state) {
    static const char *const types[] = {"Transformer", "Pooling", "Normalize"};
    static const char *const paths[] = {"", "1_Pooling", "2_Normalize"};
    json_t *modules = read_json(state, "modules.json");
    assert_int_equal(json_array_size(modules), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *module = json_array_get(modules, i);
        const char *type = json_string_value(json_object_get(module, "type"));
        const char *path = json_string_value(json_object_get(module, "path"));
        assert_true(type && path);
        assert_string_equal(strrchr(type, '.') + 1, types[i]);
        assert_string_equal(path, paths[i]);
    }
    json_decref(modules);
}

static void check_pooling(void **state, const char *flag) {
    json_t *pooling = read_json(state, "1_Pooling/config.json");
    const char *name;
    json_t *value;
    json_object_foreach(pooling, name, value) {
        if (strncmp(name, "pooling_mode_", 13) == 0) {
            assert_true(json_is_boolean(value));
            assert_true(json_is_true(value) == (strcmp(name, flag) == 0));
        }
    }
    assert_int_equal(
        json_integer_value(json_object_get(pooling, "word_embedding_dimension")), 28);
    assert_true(json_is_true(json_object_get(pooling, flag)));
    json_decref(pooling);
}

static void test_files(void **state) {
    static const char *const ways[][2] = {{"pooling=cls", "pooling_mode_cls_token"},
                                          {"pooling=mean", "pooling_mode_mean_tokens"},
                                          {"pooling=last", "pooling_mode_lasttoken"}};
    for (int i = 0; i < 3; i++) {
        train(state, ways[i][0], "2", "never");
        check_modules(state);
        check_pooling(state, ways[i][1]);
        json_t *length = read_json(state, "sentence_bert_config.json");
        assert_int_equal(json_integer_value(json_object_get(length, "max_seq_length")),
                         24);
        json_decref(length);
    }
}

// The checkpoint is whole with them: it is verified, and a run goes on from it.
static void test_goes_on(void **state) {
    train(state, "pooling=cls", "2", "never");
    free(succeed(state, LIST("inspect", "out/checkpoints/latest")));
    train(state, "pooling=cls", "4", "auto");
    check_pooling(state, "pooling_mode_cls_token");
}

// A file in a folder of a checkpoint is verified as any other.
static void test_spoilt(void **state) {
    train(state, "pooling=cls", "2", "never");
    file_text(state, "out/checkpoints/latest/1_Pooling/config.json", "{}");
    fail_with(
        state, NULL,
        LIST("train", "run.json", "--steps", "4", "--resume", "out/checkpoints/latest"),
        5, LIST("1_Pooling/config.json"));
}

// One pass where its activations fit, else two; what is asked for is taken.
static void test_passes(void **state) {
    static const char machine[] =
        "{\"name\": \"given\", \"ranks_per_node\": 1, \"compute\": {\"flops\": 500e9, "
        "\"bytes\": 30e9, "
        "\"launch\": 3e-6}, \"host\": {\"bytes\": 20e9}, \"link\": {\"inside\": "
        "{\"bytes\": 4e9, \"latency\": 1e-5}}, \"copy\": {\"to_device\": "
        "{\"bytes\": 8e9}, \"to_host\": {\"bytes\": 8e9}}}";
    static const struct {
        const char *set;
        int64_t passes;
    } asked[] = {
        {"memory={\"device\": \"20MiB\", \"host\": \"97MiB\"}", 1},
        {"memory={\"device\": \"900KiB\", \"host\": \"97MiB\"}", 2},
        {"contrastive={\"passes\": 2}", 2},
        {"contrastive={\"passes\": 1}", 1},
        {"seed=2", 1},
    };
    write_run(state);
    file_text(state, "m.json", machine);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        json_t *json = succeed_json(
            state, LIST("plan", "run.json", "--json", "--machine", "m.json", "--set",
                        "train_batch_size=128", "--set",
                        "train_micro_batch_size_per_gpu=2", "--set", asked[i].set));
        assert_int_equal(json_integer_value(json_object_get(json, "passes")),
                         asked[i].passes);
        json_decref(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_files),
        TEST(test_goes_on),
        TEST(test_spoilt),
        TEST(test_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
