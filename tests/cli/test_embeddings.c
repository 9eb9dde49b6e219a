// Labels: check
// tranche evaluate --embeddings, on small encoders whose embeddings transformers has
// computed (tools/goldens/encoders.py).
#include "command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER = 128, WIDTH = 28, TEXTS = 10 };

static const char bert[] = TR_TEST_DATA "/encoders/bert";
static const char roberta[] = TR_TEST_DATA "/encoders/roberta";

typedef struct embeddings {
    float row[TEXTS][WIDTH];
} embeddings;

// What the file has, which must be of [TEXTS, WIDTH].
static embeddings read_embeddings(void **state, const char *name) {
    embeddings e;
    size_t bytes = 0;
    char *file = file_read(state, name, &bytes);
    assert_int_equal(bytes, HEADER + sizeof e.row);
    assert_non_null(strstr(file + 10, "'shape': (10, 28), }"));
    memcpy(e.row, file + HEADER, sizeof e.row);
    free(file);
    return e;
}

// Of the folder's texts, with one more setting.
static embeddings embed(void **state, const char *folder, const char *set) {
    char texts[4096];
    snprintf(texts, sizeof texts, "%s/texts.jsonl", folder);
    free(succeed(state, LIST("evaluate", folder, "--data", texts, "--format", "jsonl",
                             "--embeddings", "e.npy", "--set", set)));
    return read_embeddings(state, "e.npy");
}

static json_t *golden(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/golden.json", folder);
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    return json;
}

// The rows are transformers' of this pooling, of length 1.
static void check_golden(const embeddings *e, const char *folder, const char *pooling) {
    json_t *json = golden(folder);
    const json_t *texts = json_object_get(json, "texts");
    assert_int_equal(json_array_size(texts), TEXTS);
    for (size_t t = 0; t < TEXTS; t++) {
        const json_t *row = json_object_get(json_array_get(texts, t), pooling);
        double square = 0;
        for (size_t i = 0; i < WIDTH; i++) {
            double value = json_number_value(json_array_get(row, i));
            square += value * value;
        }
        for (size_t i = 0; i < WIDTH; i++) {
            double want = json_number_value(json_array_get(row, i)) / sqrt(square);
            if (!(fabs(e->row[t][i] - want) < 2e-6)) {
                fail_msg("%s, %s, text %zu, %zu: %.9g, not %.9g", folder, pooling, t, i,
                         (double)e->row[t][i], want);
            }
        }
    }
    json_decref(json);
}

static double farthest(const embeddings *a, const embeddings *b) {
    double far = 0;
    for (int t = 0; t < TEXTS; t++) {
        for (int i = 0; i < WIDTH; i++) {
            far = fmax(far, fabs((double)a->row[t][i] - b->row[t][i]));
        }
    }
    return far;
}

static void test_as_transformers(void **state) {
    static const char *const poolings[] = {"mean", "cls", "last"};
    for (int i = 0; i < 3; i++) {
        char set[64];
        snprintf(set, sizeof set, "pooling=%s", poolings[i]);
        embeddings e = embed(state, bert, set);
        check_golden(&e, bert, poolings[i]);
        e = embed(state, roberta, set);
        check_golden(&e, roberta, poolings[i]);
    }
}

// Left out, the pooling is what the folder says.
static void test_as_the_folder_says(void **state) {
    embeddings e = embed(state, bert, "seed=1");
    check_golden(&e, bert, "mean");
    e = embed(state, roberta, "seed=1");
    check_golden(&e, roberta, "cls");
}

// A text has a row of its own, or shares it with others of several lengths.
static void test_packed_and_padded(void **state) {
    embeddings padded = embed(state, bert, "data.packing=false");
    check_golden(&padded, bert, "mean");
    embeddings packed = embed(state, bert, "data.packing=true");
    assert_true(farthest(&packed, &padded) < 1e-6);
    free(succeed(state,
                 LIST("evaluate", bert, "--data",
                      TR_TEST_DATA "/encoders/bert/texts.jsonl", "--format", "jsonl",
                      "--set", "data.max_length=40", "--embeddings", "e.npy")));
    embeddings shorter = read_embeddings(state, "e.npy");
    assert_true(farthest(&shorter, &padded) < 1e-6);
}

// Another text of as many tokens in a row leaves the bits of those beside it.
static void test_texts_are_apart(void **state) {
    static const char a[] = "{\"text\": \"the river was low\"}\n";
    static const char b[] = "{\"text\": \"the boats wait for the tide\"}\n";
    static const char other[] = "{\"text\": \"the river was day\"}\n";
    char before[512], after[512];
    float e[2][3][WIDTH];
    snprintf(before, sizeof before, "%s%s%s", b, a, b);
    snprintf(after, sizeof after, "%s%s%s", b, other, b);
    for (int i = 0; i < 2; i++) {
        file_text(state, "t.jsonl", i ? after : before);
        free(succeed(state, LIST("evaluate", bert, "--data", "t.jsonl", "--format",
                                 "jsonl", "--embeddings", "e.npy")));
        char *file = file_read(state, "e.npy", NULL);
        memcpy(e[i], file + HEADER, sizeof e[i]);
        free(file);
    }
    assert_memory_equal(e[0][0], e[1][0], sizeof e[0][0]);
    assert_memory_equal(e[0][2], e[1][2], sizeof e[0][2]);
    assert_memory_not_equal(e[0][1], e[1][1], sizeof e[0][1]);
}

// Lines of a file of text, blank ones left out, are as the records are.
static void test_lines(void **state) {
    float e[2][2][WIDTH];
    file_text(state, "t.jsonl", "{\"text\": \"the river\"}\n{\"text\": \"a tide\"}\n");
    file_text(state, "t.txt", "the river\n\n  \na tide\n");
    free(succeed(state,
                 LIST("evaluate", bert, "--data", "t.jsonl", "--embeddings", "a.npy")));
    free(succeed(state,
                 LIST("evaluate", bert, "--data", "t.txt", "--set",
                      "data.document_separator=\"\\n\"", "--embeddings", "b.npy")));
    for (int i = 0; i < 2; i++) {
        char *file = file_read(state, i ? "b.npy" : "a.npy", NULL);
        memcpy(e[i], file + HEADER, sizeof e[i]);
        free(file);
    }
    assert_memory_equal(e[0], e[1], sizeof e[0]);
}

static void fails(void **state, const char *text, const char *set, int status,
                  const char *const *says) {
    file_text(state, "t.jsonl", text);
    fail_with(state, NULL,
              LIST("evaluate", bert, "--data", "t.jsonl", "--format", "jsonl", "--set",
                   set, "--embeddings", "e.npy"),
              status, says);
}

static void test_bad_records(void **state) {
    static const char good[] = "{\"text\": \"the river\"}\n";
    char text[256];
    snprintf(text, sizeof text, "%s{\"txt\": \"a\"}\n", good);
    fails(state, text, "seed=1", 4, LIST("t.jsonl:2:", "no \"text\"", "data.fields"));
    snprintf(text, sizeof text, "%s\n{\"text\": 7}\n", good);
    fails(state, text, "seed=1", 4, LIST("t.jsonl:3:", "\"text\" is not a string"));
    snprintf(text, sizeof text, "{\"text\": \"a\", \"text_pair\": []}\n");
    fails(state, text, "seed=1", 4,
          LIST("t.jsonl:1:", "\"text_pair\" is not a string"));
    fails(state, "\n\n", "seed=1", 4, LIST("data.train", "no text"));
    fails(state, good, "data.max_length=2", 4, LIST("t.jsonl:1:", "data.max_length"));
    fails(state, good, "data.max_length=111", 2, LIST("data.max_length", "110"));
    fails(state, good, "pooling=max", 2, LIST("pooling", "mean"));
    fails(state, good, "task=classification", 4, LIST("no record has a \"label\""));
    fails(state, good, "task=causal_lm", 2, LIST("task", "see those behind them"));
    fails(state, good, "bf16.enabled=true", 2, LIST("f32"));
    fails(state, good, "data.loss_on=all", 2, LIST("data.loss_on", "whole texts"));
    fails(state, good, "data.format=bytes", 2, LIST("data.format", "whole texts"));
}

// A copy of the folder with another file in the place of one.
static void copy_folder(void **state, const char *name, const char *text) {
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "tokenizer.json", "modules.json",
                                        "1_Pooling/config.json"};
    mkdir(file_path(state, "m"), 0700);
    mkdir(file_path(state, "m/1_Pooling"), 0700);
    for (int i = 0; i < 5; i++) {
        char from[4096], to[128];
        snprintf(from, sizeof from, "%s/%s", bert, files[i]);
        snprintf(to, sizeof to, "m/%s", files[i]);
        FILE *file = fopen(from, "rb");
        static char bytes[1 << 20];
        assert_non_null(file);
        size_t count = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        file_write(state, to, bytes, count);
    }
    file_text(state, name, text);
}

// The class of the file says another task, whose head it lacks; task has the last word.
// What records call their second text, a key says.
static void test_task_and_field(void **state) {
    json_t *config = json_load_file(TR_TEST_DATA "/encoders/bert/config.json", 0, NULL);
    assert_non_null(config);
    json_object_set_new(config, "architectures", json_pack("[s]", "BertForMaskedLM"));
    char *text = json_dumps(config, 0);
    copy_folder(state, "m/config.json", text);
    free(text);
    json_decref(config);
    file_text(state, "t.jsonl", "{\"text\": \"a tide\", \"b\": \"who waits\"}\n");
    const char *const plain[] = {
        "evaluate", "m",  "--data", "t.jsonl", "--format", "jsonl", "--embeddings",
        "e.npy",    NULL, NULL,     NULL,      NULL,       NULL};
    const char *asked[13];
    memcpy(asked, plain, sizeof asked);
    fail_with(state, NULL, asked, 5, LIST("has no tensor", "cls.predictions"));
    asked[8] = "--set";
    asked[9] = "task=contrastive";
    free(succeed(state, asked));
    char *alone = file_read(state, "e.npy", NULL);
    asked[10] = "--set";
    asked[11] = "data.fields.text_pair=b";
    free(succeed(state, asked));
    char *pair = file_read(state, "e.npy", NULL);
    assert_memory_not_equal(alone + HEADER, pair + HEADER, WIDTH * sizeof(float));
    free(alone);
    free(pair);
}

// What asks for something that an encoder does not give, or another model does not.
static void test_refused(void **state) {
    file_text(state, "t.jsonl", "{\"text\": \"the river\"}\n");
    fail_with(state, NULL,
              LIST("evaluate", bert, "--data", "t.jsonl", "--format", "jsonl",
                   "--logits", "l.npy"),
              2, LIST("--embeddings"));
    fail_with(state, NULL, LIST("sample", bert, "--prompt", "the"), 2,
              LIST("attention both ways"));
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"bert\"}, \"task\": \"contrastive\", "
              "\"steps\": 1, \"train_batch_size\": 1, \"out\": \"out\"}");
    fail_with(state, NULL, LIST("plan", "run.json"), 2,
              LIST("train_batch_size is 1", "no negatives"));
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"gpt2\"}, \"pooling\": "
              "\"mean\", \"steps\": 1, \"train_batch_size\": 1, \"out\": \"out\"}");
    fail_with(state, NULL, LIST("plan", "run.json"), 2, LIST("pooling", "gpt2"));
}

static void fails_in_folder(void **state, const char *name, const char *text,
                            int status, const char *const *says) {
    copy_folder(state, name, text);
    file_text(state, "t.jsonl", "{\"text\": \"a\", \"text_pair\": \"b\"}\n");
    fail_with(state, NULL,
              LIST("evaluate", "m", "--data", "t.jsonl", "--format", "jsonl",
                   "--embeddings", "e.npy"),
              status, says);
}

#define MODULE(path, type)                                                             \
    "{\"idx\": 0, \"name\": \"0\", \"path\": \"" path "\", \"type\": \"s.models." type \
    "\"}"

static void test_bad_folders(void **state) {
    fails_in_folder(state, "m/modules.json", "[" MODULE("3_Dense", "Dense") "]", 2,
                    LIST("m/modules.json", "Dense"));
    fails_in_folder(state, "m/modules.json", "{}", 2, LIST("m/modules.json", "list"));
    fails_in_folder(state, "m/modules.json", "[", 2,
                    LIST("m/modules.json:1:", "not valid JSON"));
    fails_in_folder(state, "m/1_Pooling/config.json",
                    "{\"pooling_mode_max_tokens\": true}", 2,
                    LIST("1_Pooling/config.json", "pooling_mode_max_tokens"));
    fails_in_folder(state, "m/1_Pooling/config.json", "{\"pooling_mode\": \"max\"}", 2,
                    LIST("1_Pooling/config.json", "max"));
    fails_in_folder(state, "m/1_Pooling/config.json",
                    "{\"pooling_mode_mean_tokens\": true, "
                    "\"pooling_mode_cls_token\": true}",
                    2, LIST("1_Pooling/config.json", "several ways"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_as_transformers),
        TEST(test_as_the_folder_says),
        TEST(test_packed_and_padded),
        TEST(test_texts_are_apart),
        TEST(test_lines),
        TEST(test_bad_records),
        TEST(test_task_and_field),
        TEST(test_refused),
        TEST(test_bad_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
