#include "runs.h"

#include "command.h"

#include <stdio.h>
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
