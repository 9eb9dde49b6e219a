// tranche evaluate and predict, and tranche plan --compare.
#include "command.h"
#include "runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The last validation loss of metrics.jsonl.
static double last_validation(void **state) {
    char *text = file_read(state, "out/metrics.jsonl", NULL), *at = text, *last = NULL;
    while ((at = strstr(at, "\"validation_loss\": ")) != NULL) {
        last = at += strlen("\"validation_loss\": ");
    }
    assert_non_null(last);
    double loss = strtod(last, NULL);
    free(text);
    return loss;
}

// Without --data it is the run's own validation, to the same loss, from any of the
// folders that hold the model.
static void test_as_trained(void **state) {
    static const char *const paths[] = {"out", "out/checkpoints",
                                        "out/checkpoints/latest",
                                        "out/checkpoints/step-00000006"};
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    double loss = last_validation(state);
    for (int i = 0; i < 4; i++) {
        json_t *result = succeed_json(state, LIST("evaluate", paths[i], "--json"));
        assert_float_equal(number_in(result, "loss"), loss, 1e-6);
        assert_float_equal(number_in(result, "perplexity"), exp(loss), 1e-3);
        assert_float_equal(number_in(result, "bits_per_byte"), loss / log(2), 1e-5);
        assert_true(number_in(result, "accuracy") > 0);
        assert_true(number_in(result, "samples") * 16 == number_in(result, "targets"));
        json_decref(result);
    }
    char *text = succeed(state, LIST("evaluate", "out", "--data", "text.txt"));
    assert_says(text, "samples        187\ntargets        2992\nloss  ");
    assert_says(text, "bits per byte");
    free(text);
}

// Trains with these keys; evaluating the checkpoint gives about the loss that the run
// wrote, or exactly that.
static void check_half_weights(void **state, const char *more, bool exactly) {
    run_file(state, text_run, more);
    free(succeed(state, LIST("train", "run.json", "--resume", "never")));
    double loss = last_validation(state);
    json_t *result = succeed_json(state, LIST("evaluate", "out", "--json"));
    double off = fabs(number_in(result, "loss") - loss);
    assert_true(exactly ? off < 1e-6 : off > 1e-6 && off < 1e-2 * loss);
    assert_int_equal(json_boolean_value(json_object_get(result, "weights_rounded")),
                     !exactly);
    char *text = succeed(state, LIST("evaluate", "out"));
    assert_int_equal(strstr(text, "\nweights        rounded to bf16") != NULL,
                     !exactly);
    free(text);
    json_decref(result);
}

// A checkpoint's weights of 16 bits are not those that were trained, unless the run
// computes with them: the command says so.
static void test_rounded_weights(void **state) {
    check_half_weights(state, "", true);
    check_half_weights(state, ", \"checkpoint\": {\"dtype\": \"bf16\"}", false);
    check_half_weights(
        state, ", \"checkpoint\": {\"dtype\": \"bf16\"}, \"bf16\": {\"enabled\": true}",
        true);
}

// The file's header, its size, and that the loss is that of its numbers.
static void test_logits(void **state) {
    size_t bytes = 0;
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    json_t *result = succeed_json(state, LIST("evaluate", "out", "--data", "text.txt",
                                              "--logits", "l.npy", "--json"));
    char *file = file_read(state, "l.npy", &bytes);
    char *text = file_read(state, "text.txt", NULL);
    double loss = 0;
    assert_int_equal(bytes, 128 + 187 * 16 * 256 * 4);
    assert_memory_equal(file,
                        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', "
                        "'fortran_order': False, 'shape': (187, 16, 256), }",
                        70);
    for (int i = 0; i < 187 * 16; i++) {
        float row[256];
        double total = 0;
        memcpy(row, file + 128 + (size_t)i * sizeof row, sizeof row);
        for (int v = 0; v < 256; v++) {
            total += exp((double)row[v] - row[(unsigned char)text[i + 1]]);
        }
        loss += log(total) / (187 * 16);
    }
    assert_float_equal(number_in(result, "loss"), loss, 1e-6);
    free(text);
    free(file);
    json_decref(result);
    fail_with(state, NULL, LIST("evaluate", "out", "--logits", "no/l.npy"), 5,
              LIST("no/l.npy"));
}

// What somebody has left at the file's name, or beside it, is not written through.
static void test_logits_follow_no_link(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    file_text(state, "victim", "precious");
    assert_int_equal(symlink("victim", file_path(state, "l.npy.new")), 0);
    free(succeed(state, LIST("evaluate", "out", "--logits", "l.npy")));
    assert_int_equal(unlink(file_path(state, "l.npy")), 0);
    assert_int_equal(symlink("victim", file_path(state, "l.npy")), 0);
    fail_with(state, NULL, LIST("evaluate", "out", "--logits", "l.npy"), 5,
              LIST("l.npy", "not a regular file"));
    char *text = file_read(state, "victim", NULL);
    assert_string_equal(text, "precious");
    free(text);
}

static const char table_run[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 8, 2]}, \"data\": "
    "{\"format\": \"csv\", \"train\": \"labelled.csv\"}, \"epochs\": 20, \"out\": "
    "\"out\", \"train_batch_size\": 8, \"optimizer\": {\"params\": {\"lr\": 0.02}}}";

// 40 points; the class is whether the first number is the larger one.
static void write_tables(void **state) {
    char labelled[4096] = "a,b,class\n", bare[4096] = "a,b\n";
    for (int i = 0; i < 40; i++) {
        int a = i * 37 % 41 - 20, b = i * 23 % 43 - 21;
        size_t used = strlen(labelled), also = strlen(bare);
        snprintf(labelled + used, sizeof labelled - used, "%d,%d,%d\n", a, b, a > b);
        snprintf(bare + also, sizeof bare - also, "%d,%d\n", a, b);
    }
    file_text(state, "labelled.csv", labelled);
    file_text(state, "bare.csv", bare);
    file_text(state, "run.json", table_run);
}

// With labels or without, the same classes; as many are right as evaluate says.
static void test_predict(void **state) {
    write_tables(state);
    free(succeed(state, LIST("train", "run.json")));
    char *bare = succeed(state, LIST("predict", "out", "--data", "bare.csv"));
    char *labelled = succeed(state, LIST("predict", "out", "--data", "labelled.csv"));
    assert_string_equal(bare, labelled);
    assert_memory_equal(bare, "sample,class,p0,p1\n0,", 21);
    int right = 0;
    char *line = strchr(bare, '\n') + 1;
    for (int i = 0; i < 40; i++, line = strchr(line, '\n') + 1) {
        int sample, class, a = i * 37 % 41 - 20, b = i * 23 % 43 - 21;
        double p0, p1;
        assert_int_equal(sscanf(line, "%d,%d,%lf,%lf", &sample, &class, &p0, &p1), 4);
        assert_int_equal(sample, i);
        assert_int_equal(class, p1 > p0);
        assert_float_equal(p0 + p1, 1, 1e-5);
        right += class == (a > b);
    }
    assert_string_equal(line, "");
    json_t *result = succeed_json(
        state, LIST("evaluate", "out", "--data", "labelled.csv", "--json"));
    assert_float_equal(number_in(result, "accuracy"), right / 40.0, 1e-9);
    assert_true(json_is_null(json_object_get(result, "bits_per_byte")));
    assert_true(right >= 32);
    char *lines =
        succeed(state, LIST("predict", "out", "--data", "bare.csv", "--json"));
    assert_memory_equal(lines, "{\"sample\": 0, \"class\": ", 22);
    free(lines);
    free(labelled);
    free(bare);
    json_decref(result);
}

// Features alone, of npy too.
static void test_predict_npy(void **state) {
    bad_sample_run(state, -1);
    free(succeed(state, LIST("train", "run.json")));
    char *bare = succeed(state, LIST("predict", "out", "--data", "x.npy"));
    char *labelled = succeed(
        state, LIST("predict", "out", "--data", "x.npy", "--set", "data.labels=y.npy"));
    assert_string_equal(bare, labelled);
    assert_says(bare, "\n39,");
    free(labelled);
    free(bare);
}

// What the run file says of the format of its own data does not hold for another.
static void test_other_format(void **state) {
    static const char head[] = "a,b,c,d,e,f,y\n";
    char table[4096];
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    strcpy(table, head);
    for (int i = 0; i < 5; i++) {
        strcat(table, "1,2,3,4,5,6,2\n");
    }
    file_text(state, "six.csv", table);
    char *rows =
        succeed(state, LIST("predict", "out", "--data", "six.csv", "--format", "csv"));
    assert_says(rows, "sample,class,p0,p1,p2\n0,");
    assert_says(rows, "\n4,");
    free(rows);
    json_t *result = succeed_json(state, LIST("evaluate", "out", "--data", "six.csv",
                                              "--set", "data.format=csv", "--json"));
    assert_true(number_in(result, "samples") == 5);
    json_decref(result);
    fail_with(state, NULL, LIST("evaluate", "out", "--data", "six.csv"), 2,
              LIST("data.format is \"random\"", "--set data.format=..."));
    fail_with(state, NULL,
              LIST("evaluate", "out", "--data", "six.csv", "--format", "csv", "--set",
                   "data.samples=5"),
              2, LIST("--set: data.samples: there is no such key"));
}

// The same of text, whose tokens are also there as ids: the loss is the same.
static void test_text_as_ids(void **state) {
    char set[512];
    file_words(state, "a.txt", 2000);
    run_file(state, text_run, "");
    snprintf(set, sizeof set, "data.tokenizer=%s", gpt2_tokenizer);
    free(succeed(state, LIST("train", "run.json", "--data", "a.txt", "--set",
                             "data.format=text", "--set", set)));
    free(succeed(state, LIST("tokenize", "--tokenizer", gpt2_tokenizer, "a.txt",
                             "--out", "ids.bin")));
    json_t *text =
        succeed_json(state, LIST("evaluate", "out", "--data", "a.txt", "--json"));
    json_t *ids = succeed_json(state, LIST("evaluate", "out", "--data", "ids.bin",
                                           "--format", "tokens", "--json"));
    assert_true(number_in(text, "loss") == number_in(ids, "loss"));
    assert_true(number_in(text, "targets") == number_in(ids, "targets"));
    json_decref(ids);
    json_decref(text);
}

// Puts a NaN in place of the last weight of the latest checkpoint.
static void spoil_last_weight(void **state) {
    static const char name[] = "out/checkpoints/latest/model.safetensors";
    static const float nan = NAN;
    size_t bytes;
    char *weights = file_read(state, name, &bytes);
    memcpy(weights + bytes - sizeof nan, &nan, sizeof nan);
    file_write(state, name, weights, bytes);
    free(weights);
}

// Of logits that are not finite there is neither a loss nor a class.
static void test_not_finite(void **state) {
    const char *const words[] = {"sample 0 of the data", "is nan", "diverged", NULL};
    write_tables(state);
    free(succeed(state, LIST("train", "run.json")));
    spoil_last_weight(state);
    fail_with(state, NULL, LIST("evaluate", "out", "--data", "labelled.csv"), 7, words);
    fail_with(state, NULL,
              LIST("evaluate", "out", "--data", "labelled.csv", "--logits", "l.npy"), 7,
              words);
    assert_int_not_equal(access(file_path(state, "l.npy"), F_OK), 0);
    assert_int_not_equal(access(file_path(state, "l.npy.new"), F_OK), 0);
    fail_with(state, NULL, LIST("predict", "out", "--data", "bare.csv", "--json"), 7,
              words);
}

// With a NaN as the first weight of each tensor in turn: no layer between it and the
// logits swallows it.
static void spoil_each_tensor(void **state, const char *const *command) {
    static const char name[] = "out/checkpoints/latest/model.safetensors";
    static const float nan = NAN;
    size_t bytes;
    char *weights = file_read(state, name, &bytes);
    uint64_t length;
    memcpy(&length, weights, sizeof length);
    json_t *header = json_loadb(weights + sizeof length, (size_t)length, 0, NULL), *one;
    const char *tensor;
    int tried = 0;
    json_object_foreach(header, tensor, one) {
        json_t *place = json_array_get(json_object_get(one, "data_offsets"), 0);
        float before;
        if (place && !strstr(tensor, "num_batches")) {
            char *at = weights + sizeof length + length + json_integer_value(place);
            memcpy(&before, at, sizeof before);
            memcpy(at, &nan, sizeof nan);
            file_write(state, name, weights, bytes);
            memcpy(at, &before, sizeof before);
            fail_with(state, NULL, command, 7,
                      LIST(strcmp(*command, "train") == 0 ? "not finite" : "is nan"));
            tried++;
        }
    }
    assert_true(tried >= 4);
    json_decref(header);
    free(weights);
}

static void test_weight_not_finite(void **state) {
    write_tables(state);
    free(succeed(state, LIST("train", "run.json")));
    spoil_each_tensor(state, LIST("evaluate", "out", "--data", "labelled.csv"));
    spoil_each_tensor(state, LIST("predict", "out", "--data", "bare.csv"));
    spoil_each_tensor(state,
                      LIST("train", "run.json", "--model", "out/checkpoints/latest",
                           "--set", "out=other", "--set", "max_skipped_updates=2"));
}

static void test_text_weight_not_finite(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    spoil_each_tensor(state, LIST("evaluate", "out"));
}

static void test_refusals(void **state) {
    write_tables(state);
    free(succeed(state, LIST("train", "run.json")));
    fail_with(state, NULL, LIST("evaluate", "out"), 2,
              LIST("no validation data", "--data PATH"));
    fail_with(state, NULL, LIST("evaluate", "out", "--data", "bare.csv"), 4,
              LIST("bare.csv"));
    fail_with(state, NULL, LIST("evaluate", "nothere", "--data", "bare.csv"), 5,
              LIST("nothere"));
    fail_with(state, NULL, LIST("predict", "out", "--data", "nothere.csv"), 4,
              LIST("nothere.csv"));
    fail_with(state, NULL,
              LIST("evaluate", "out", "--data", "bare.csv", "--format", "x"), 2,
              LIST("data.format", "\"x\""));
    file_text(state, "three.csv", "1,2,3,4\n");
    fail_with(state, NULL, LIST("predict", "out", "--data", "three.csv"), 4,
              LIST("three.csv", "3 features"));
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "text")));
    fail_with(state, NULL, LIST("predict", "text", "--data", "text.txt"), 2,
              LIST("a gpt2", "tranche evaluate --logits"));
    unlink(file_path(state, "text/checkpoints/step-00000006/model.safetensors"));
    fail_with(state, NULL, LIST("evaluate", "text"), 5, LIST("text"));
}

// ---- plan --compare

// The first row of a stage: nothing is offloaded, one micro-batch at a time.
static const json_t *row_of(const json_t *plans, int stage) {
    size_t i = 0;
    while (number_in(json_array_get(plans, i), "stage") != stage) {
        i++;
        assert_true(i < json_array_size(plans));
    }
    return json_array_get(plans, i);
}

static void test_compare(void **state) {
    run_file(state, text_run, "");
    machine_file(state, ", \"link\": {\"inside\": {\"bytes\": 1e8}}");
    json_t *all = succeed_json(state, LIST("plan", "run.json", "--compare", "--ranks",
                                           "2", "--json", "--machine", "m.json"));
    const json_t *plans = json_object_get(all, "plans");
    assert_true(json_array_size(plans) > 4 * 5);
    double whole = 0;
    for (int stage = 0; stage < 4; stage++) { // sharing out takes less
        const json_t *row = row_of(plans, stage);
        double bytes = number_in(json_object_get(row, "bytes"), "device");
        assert_true(number_in(row, "stage") == stage);
        assert_true(number_in(row, "seconds") > 0);
        whole = stage == 0 ? bytes : whole;
        assert_true(stage == 0 || bytes < whole);
    }
    // A row is what the plan itself says.
    json_t *plan = succeed_json(state, LIST("plan", "run.json", "--ranks", "2", "--set",
                                            "zero_optimization.stage=2", "--json"));
    const json_t *device = json_object_get(json_object_get(plan, "ledger"), "device");
    assert_true(number_in(device, "total") ==
                number_in(json_object_get(row_of(plans, 2), "bytes"), "device"));
    char *text = succeed(state, LIST("plan", "run.json", "--compare"));
    assert_says(text, "0      none  ");
    assert_says(text, "<- the run file's\n");
    assert_says(text, "--machine FILE adds the predicted time");
    assert_null(strstr(text, "\n1  "));
    free(text);
    json_decref(plan);
    json_decref(all);
}

// Waves, rows that are too much, and the reason of each that has no plan.
static void test_compare_waves(void **state) {
    run_file(state, text_run, "");
    machine_file(state, ", \"memory\": {\"device\": 1000}");
    char *text = succeed(state, LIST("plan", "run.json", "--compare", "--machine",
                                     "m.json", "--ranks", "2"));
    assert_says(text, "\n0      none                                1 ");
    assert_says(text, "\n0      none                                2 ");
    assert_says(text, "  over the device's memory");
    assert_says(text, "no time: machine m: several ranks on a node need "
                      "link.inside.bytes");
    assert_says(text, "\n1      optimizer, parameters to host       - no such plan: "
                      "zero_optimization.offload_param on 2 ranks needs "
                      "zero_optimization.stage 3; it is 1\n");
    assert_null(strstr(text, "no such plan\n"));
    assert_null(strstr(text, "no such plan: \n"));
    free(text);
    json_t *all = succeed_json(state, LIST("plan", "run.json", "--compare", "--ranks",
                                           "2", "--json", "--machine", "m.json"));
    const json_t *plans = json_object_get(all, "plans");
    int own = 0;
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const json_t *row = json_array_get(plans, i);
        own += json_is_true(json_object_get(row, "run_file"));
        assert_true(json_is_string(json_object_get(row, "why")));
    }
    assert_int_equal(own, 1);
    json_decref(all);
}

// A Hugging Face folder with a tokenizer is for text, unless told otherwise; its
// tokenizer_config.json is as transformers writes it.
static void test_tokenizer_folder(void **state) {
    size_t bytes;
    train_tokens(state);
    char *config = file_read(state, "out/checkpoints/latest/config.json", &bytes);
    assert_int_equal(mkdir(file_path(state, "plain"), 0755), 0);
    file_text(state, "plain/config.json", config);
    free(config);
    file_text(state, "plain/tokenizer_config.json",
              "{\"eos_token\": \"<|end|>\", \"model_max_length\": "
              "1000000000000000019884624838656}");
    assert_int_equal(symlink(gpt2_tokenizer, file_path(state, "plain/tokenizer.json")),
                     0);
    assert_int_equal(
        symlink(file_path(state, "out/checkpoints/latest/model.safetensors"),
                file_path(state, "plain/model.safetensors")),
        0);
    char *found = succeed(state, LIST("evaluate", "plain", "--data", "a.txt"));
    char *text = succeed(
        state, LIST("evaluate", "plain", "--data", "a.txt", "--format", "text"));
    char *plain = succeed(
        state, LIST("evaluate", "plain", "--data", "a.txt", "--format", "bytes"));
    assert_string_equal(found, text);
    assert_string_not_equal(found, plain);
    free(found);
    free(text);
    free(plain);
}

// The plan alone: no weight is read.
static void test_plan(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    json_t *whole = succeed_json(state, LIST("evaluate", "out", "--json"));
    spoil_weights(state);
    char *text = succeed(state, LIST("evaluate", "out", "--plan"));
    assert_says(text, "inference: ");
    assert_null(strstr(text, "perplexity"));
    free(text);
    json_t *plan = succeed_json(state, LIST("evaluate", "out", "--plan", "--json"));
    const json_t *device = json_object_get(json_object_get(plan, "ledger"), "device");
    assert_true(number_in(device, "total") ==
                number_in(json_object_get(whole, "planned_peak_bytes"), "device"));
    json_decref(whole);
    json_decref(plan);
    fail_with(state, NULL, LIST("evaluate", "out"), 5, LIST("model.safetensors"));
    fail_with(state, NULL, LIST("evaluate", "out", "--plan", "--logits", "l.npy"), 2,
              LIST("--plan", "--logits"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_tokenizer_folder),
        TEST(test_as_trained),
        TEST(test_rounded_weights),
        TEST(test_logits),
        TEST(test_logits_follow_no_link),
        TEST(test_predict),
        TEST(test_weight_not_finite),
        TEST(test_text_weight_not_finite),
        TEST(test_refusals),
        TEST(test_compare),
        TEST(test_compare_waves),
        TEST(test_plan),
        TEST(test_not_finite),
        TEST(test_other_format),
        TEST(test_text_as_ids),
        TEST(test_predict_npy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
