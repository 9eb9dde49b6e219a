#include "runs.h"

#include "command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char classifier_run[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]},\n"
    " \"data\": {\"format\": \"random\", \"samples\": 20, \"features\": 6, "
    "\"classes\": 3},\n"
    " \"epochs\": 2, \"seed\": 1, \"out\": \"out\", \"train_batch_size\": 6";

const char text_run[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
    "\"n_head\": 2, \"n_positions\": 16},\n"
    " \"data\": {\"format\": \"bytes\", \"train\": [\"text.txt\"], \"validation\": "
    "0.1},\n"
    " \"steps\": 6, \"seed\": 3, \"out\": \"out\", \"train_batch_size\": 5, "
    "\"train_micro_batch_size_per_gpu\": 2";

void run_file(void *const *state, const char *text, const char *more) {
    char all[4096];
    int length = snprintf(all, sizeof all, "%s%s}\n", text, more);
    assert_true(length > 0 && (size_t)length < sizeof all);
    file_text(state, "run.json", all);
    if (text == text_run) {
        file_words(state, "text.txt", 3000);
    }
}

void machine_file(void *const *state, const char *more) {
    char all[1024];
    int length = snprintf(all, sizeof all,
                          "{\"name\": \"m\", \"ranks_per_node\": 8, \"compute\": "
                          "{\"flops\": 1e9, \"bytes\": 1e9}%s}",
                          more);
    assert_true(length > 0 && (size_t)length < sizeof all);
    file_text(state, "m.json", all);
}

// Of version 1.
static void npy_file(void *const *state, const char *name, const char *dictionary,
                     const void *data, size_t bytes) {
    char all[1024] = "\x93NUMPY\x01\x00";
    size_t length = strlen(dictionary);
    assert_true(10 + length + bytes <= sizeof all);
    all[8] = (char)length;
    memcpy(all + 10, dictionary, length);
    memcpy(all + 10 + length, data, bytes);
    file_write(state, name, all, 10 + length + bytes);
}

void bad_sample_run(void *const *state, int bad) {
    enum { SAMPLES = 40 };
    float features[SAMPLES][2];
    int32_t labels[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        features[i][0] = (float)(i % 5);
        features[i][1] = i == bad ? NAN : (float)(i % 3);
        labels[i] = i % 3;
    }
    npy_file(state, "x.npy",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (40, 2), }", features,
             sizeof features);
    npy_file(state, "y.npy",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (40,), }", labels,
             sizeof labels);
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}, "
              "\"data\": {\"format\": \"npy\", \"train\": \"x.npy\", \"labels\": "
              "\"y.npy\", \"order\": \"sequential\"}, \"steps\": 10, "
              "\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2}");
}

const char gpt2_tokenizer[] = TR_TEST_DATA "/tokenizers/gpt2.json";

void train_tokens(void *const *state) {
    file_words(state, "a.txt", 2000);
    free(succeed(state, LIST("tokenize", "--tokenizer", gpt2_tokenizer, "a.txt",
                             "--out", "ids")));
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--data", "ids", "--set",
                             "data.format=tokens", "--set", "model.vocab_size=500")));
}

void spoil_weights(void *const *state) {
    static const char name[] = "out/checkpoints/latest/model.safetensors";
    size_t bytes;
    char *weights = file_read(state, name, &bytes);
    memset(weights, 0, bytes);
    file_write(state, name, weights, bytes);
    free(weights);
}
