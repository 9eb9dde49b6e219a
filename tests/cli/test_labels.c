// Labels of texts and masked tokens, from records to predictions.
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENIZER "data.tokenizer=" TR_TEST_DATA "/encoders/bert/tokenizer.json"

static const char bert[] = TR_TEST_DATA "/encoders/bert";

// A run of the small BERT on t.jsonl.
static void write_run(void **state, const char *task, const char *more) {
    char text[2048];
    snprintf(text, sizeof text,
             "{\"model\": \"%s\", \"task\": \"%s\", \"data\": {\"format\": \"jsonl\", "
             "\"train\": [\"t.jsonl\"], \"max_length\": 16}, \"train_batch_size\": 4, "
             "\"train_micro_batch_size_per_gpu\": 2, \"steps\": 6, \"out\": \"out\", "
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.003}}%s}",
             bert, task, more);
    file_text(state, "run.json", text);
}

// Texts of two moods, whose labels the format makes of a number.
static void write_records(void **state, const char *no, const char *yes) {
    static const char *const texts[] = {"the river was low", "boats wait for the tide",
                                        "rain fell all day", "who waits for a boat"};
    char text[4096] = "";
    for (int i = 0; i < 12; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "{\"text\": \"%s\", \"label\": %s}\n",
                 texts[i % 4], i % 2 ? yes : no);
    }
    file_text(state, "t.jsonl", text);
}

static void fails(void **state, const char *text, int status, const char *const *says) {
    file_text(state, "t.jsonl", text);
    fail_with(state, NULL, LIST("train", "run.json"), status, says);
}

static void test_one_of_several(void **state) {
    write_run(state, "classification", "");
    write_records(state, "\"calm, low\"", "\"wet\"");
    free(succeed(state, LIST("train", "run.json")));
    char *config = file_read(state, "out/checkpoints/latest/config.json", NULL);
    assert_non_null(strstr(config, "BertForSequenceClassification"));
    assert_non_null(strstr(config, "\"1\": \"wet\""));
    free(config);
    char *rows = succeed(state, LIST("predict", "out", "--data", "t.jsonl"));
    assert_non_null(strstr(rows, "sample,label,\"calm, low\",wet\n0,"));
    assert_non_null(strstr(rows, "\n11,"));
    free(rows);
    char *result = succeed(state, LIST("evaluate", "out", "--data", "t.jsonl"));
    assert_non_null(strstr(result, "accuracy"));
    free(result);
    // Texts to be classified have no label, and the run's may be packed.
    file_text(state, "new.jsonl",
              "{\"text\": \"who waits\"}\n{\"text\": \"the tide\"}\n");
    rows = succeed(state, LIST("predict", "out", "--data", "new.jsonl", "--json"));
    assert_non_null(strstr(rows, "\"sample\": 1, \"class\": "));
    free(rows);
}

static void test_several_and_numbers(void **state) {
    write_run(state, "classification", "");
    write_records(state, "[\"low\"]", "[\"high\", \"wet\"]");
    free(succeed(state, LIST("train", "run.json")));
    char *rows = succeed(state, LIST("predict", "out", "--data", "t.jsonl"));
    assert_non_null(strstr(rows, "sample,labels,high,low,wet\n"));
    free(rows);
    write_records(state, "0.5", "-1.25");
    free(succeed(state, LIST("train", "run.json", "--out", "values")));
    rows = succeed(state, LIST("predict", "values", "--data", "t.jsonl", "--json"));
    assert_non_null(strstr(rows, "\"values\": ["));
    free(rows);
}

// Stopped after half of its steps, it comes to the same bits.
static void test_goes_on(void **state) {
    static const char *const tasks[] = {"classification", "masked_lm"};
    write_records(state, "0", "1");
    for (int i = 0; i < 2; i++) {
        write_run(state, tasks[i], "");
        free(succeed(state, LIST("train", "run.json", "--out", i ? "c" : "a")));
        const char *half = i ? "d" : "b";
        free(succeed(state, LIST("train", "run.json", "--out", half, "--steps", "3")));
        free(succeed(state, LIST("train", "run.json", "--out", half)));
        free(succeed(state, LIST("diff", i ? "c" : "a", half)));
    }
}

// Pairs of spans: stopped after half of its steps, which then have another wave and
// recompute, a reproducible run comes to the same bits. Its folder is one of
// transformers' class.
static void test_next_sentence(void **state) {
    write_run(state, "masked_lm",
              ", \"mlm\": {\"next_sentence\": true}, \"execution\": "
              "{\"reproducible\": true}, \"evaluation\": {\"every\": 3}");
    write_records(state, "0", "1");
    free(succeed(state, LIST("train", "run.json", "--out", "a", "--set",
                             "data.validation=0.2")));
    char *config = file_read(state, "a/checkpoints/latest/config.json", NULL);
    assert_non_null(strstr(config, "\"BertForPreTraining\""));
    free(config);
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--steps", "3", "--set",
                             "data.validation=0.2")));
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--set",
                             "data.validation=0.2", "--set", "execution.wave=2",
                             "--set", "execution.recompute=unit")));
    free(succeed(state, LIST("diff", "a", "b")));
    char *result = succeed(state, LIST("evaluate", "a", "--data", "t.jsonl"));
    assert_non_null(strstr(result, "accuracy"));
    free(result);
    char *shown = succeed(state, LIST("inspect", "run.json", "--samples", "4"));
    assert_non_null(strstr(shown, "the second span "));
    free(shown);
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.packing=true"), 2,
              LIST("data.packing", "mlm.next_sentence"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", TOKENIZER, "--set",
                   "model={\"model_type\": \"roberta\", \"hidden_size\": 8, "
                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 2}"),
              2, LIST("mlm.next_sentence", "roberta", "bert"));
}

static void test_bad_labels(void **state) {
    static const char good[] = "{\"text\": \"a\", \"label\": \"low\"}\n"
                               "{\"text\": \"b\", \"label\": \"high\"}\n";
    char text[512];
    write_run(state, "classification", "");
    snprintf(text, sizeof text, "%s{\"text\": \"c\"}\n", good);
    fails(state, text, 4, LIST("t.jsonl:3:", "no \"label\"", "data.fields.label"));
    snprintf(text, sizeof text, "%s{\"text\": \"c\", \"label\": 3}\n", good);
    fails(state, text, 4, LIST("t.jsonl:3:", "another kind"));
    snprintf(text, sizeof text, "%s{\"text\": \"c\", \"label\": {}}\n", good);
    fails(state, text, 4, LIST("t.jsonl:3:", "another kind"));
    fails(state, "{\"text\": \"a\", \"label\": \"x\"}\n", 4, LIST("one label"));
    fails(state, "{\"text\": \"a\"}\n", 4, LIST("no record has a \"label\""));
    file_text(state, "v.jsonl", "\n{\"text\": \"c\", \"label\": \"hihg\"}\n");
    file_text(state, "t.jsonl", good);
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "data.validation=[\"v.jsonl\"]"), 4,
              LIST("v.jsonl:2:", "\"hihg\" is none of the model's 2",
                   "\"high\", \"low\"", "did you mean \"high\""));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.format=text"), 2,
              LIST("data.format", "jsonl"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "pooling=cls"), 2,
              LIST("pooling", "classification"));
}

static void test_masks(void **state) {
    write_run(state, "masked_lm", "");
    write_records(state, "0", "1");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set",
                   "data.tokenizer=" TR_TEST_DATA "/tokenizers/smollm.json"),
              4, LIST("smollm.json", "mask_token", "masked_lm"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "mlm.random=0.3"), 2,
              LIST("mlm.mask", "mlm.random", "1.1"));
    file_text(state, "t.jsonl", "{\"text\": \"a\", \"text_pair\": \"b\"}\n");
    fail_with(state, NULL, LIST("train", "run.json"), 4, LIST("t.jsonl:1:", "pair"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "task=causal_lm"), 2,
              LIST("task", "behind them"));
    // A decoder that classifies, by its last token.
    write_records(state, "\"no\"", "\"yes\"");
    free(succeed(state,
                 LIST("train", "run.json", "--set", "task=classification", "--set",
                      TOKENIZER, "--set",
                      "model={\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, "
                      "\"n_head\": 2, \"n_positions\": 16, \"vocab_size\": 150}")));
    char *rows = succeed(state, LIST("predict", "out", "--data", "t.jsonl"));
    assert_non_null(strstr(rows, "sample,label,no,yes\n"));
    free(rows);
}

// An adapter beside a base without a head that gives labels: the head is trained whole.
static void test_adapter(void **state) {
    static const char *const asked[] = {"out", "out/checkpoints/latest", "merged"};
    write_run(state, "causal_lm", "");
    write_records(state, "\"no\"", "\"yes\"");
    free(succeed(state,
                 LIST("train", "run.json", "--out", "base", "--set", TOKENIZER, "--set",
                      "data.eos_token=[SEP]", "--set",
                      "model={\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, "
                      "\"n_head\": 2, \"n_positions\": 16, \"vocab_size\": 150}")));
    write_run(state, "classification", ", \"adapter\": {\"type\": \"lora\", \"r\": 2}");
    free(succeed(state, LIST("train", "run.json", "--set", "steps=12", "--set",
                             "model=base/checkpoints/latest")));
    char *config = file_read(state, "out/checkpoints/latest/adapter_config.json", NULL);
    assert_non_null(strstr(config, "\"score\""));
    assert_non_null(strstr(config, "SEQ_CLS"));
    free(config);
    free(succeed(state, LIST("merge", "out", "merged")));
    char *first = NULL;
    for (int i = 0; i < 3; i++) {
        char *rows = succeed(state, LIST("predict", asked[i], "--data", "t.jsonl"));
        assert_non_null(strstr(rows, "sample,label,no,yes\n"));
        // Merged weights are rounded: the labels are the same, and the shares nearly.
        if (first && i < 2) {
            assert_string_equal(rows, first);
        }
        free(first);
        first = rows;
    }
    free(first);
}

static void test_pairs(void **state) {
    static const char good[] = "{\"anchor\": \"a river\", \"positive\": \"low\"}\n"
                               "{\"anchor\": \"the tide\", \"positive\": \"wet\"}\n"
                               "{\"anchor\": \"a boat\", \"positive\": \"mud\"}\n"
                               "{\"anchor\": \"rain\", \"positive\": \"day\"}\n"
                               "{\"anchor\": \"who\", \"positive\": \"men\"}\n";
    char text[1024];
    write_run(state, "contrastive", "");
    file_text(state, "t.jsonl", good);
    // Cut in two ways, on a last batch that is short, too.
    free(succeed(state, LIST("train", "run.json", "--out", "a")));
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--set",
                             "train_micro_batch_size_per_gpu=4")));
    free(succeed(state, LIST("evaluate", "a", "--data", "t.jsonl", "--set",
                             "data.fields.text=anchor", "--embeddings", "e.npy")));
    snprintf(text, sizeof text, "%s{\"anchor\": \"c\"}\n", good);
    fails(state, text, 4, LIST("t.jsonl:6:", "no \"positive\""));
    snprintf(text, sizeof text,
             "%s{\"anchor\": \"c\", \"positive\": \"d\", \"negative\": \"e\"}\n", good);
    fails(state, text, 4, LIST("t.jsonl:6:", "first record has none"));
    file_text(state, "t.jsonl", good);
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "train_batch_size=1", "--set",
                   "train_micro_batch_size_per_gpu=1"),
              2, LIST("train_batch_size is 1", "no negatives"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_one_of_several), TEST(test_several_and_numbers),
        TEST(test_goes_on),        TEST(test_bad_labels),
        TEST(test_masks),          TEST(test_pairs),
        TEST(test_adapter),        TEST(test_next_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
