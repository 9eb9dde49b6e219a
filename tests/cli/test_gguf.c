// tranche export and tranche import, as their users meet them.
#include "cli/command.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN TR_TEST_DATA "/goldens/llama/initial"

static void there_and_back(void **state) {
    outcome o = run(state, LIST("export", GOLDEN, "m.gguf", "--type", "f32"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "saved: m.gguf");
    assert_says(o.err, "token ids alone");
    outcome_free(&o);
    free(succeed(state, LIST("import", "m.gguf", "back")));
    free(succeed(state, LIST("diff", GOLDEN, "back")));
    char *ours = succeed(state, LIST("sample", GOLDEN, "--prompt", "1 2", "--tokens",
                                     "9", "--temperature", "0"));
    char *theirs = succeed(state, LIST("sample", "back", "--prompt", "1 2", "--tokens",
                                       "9", "--temperature", "0"));
    assert_string_equal(ours, theirs);
    free(ours);
    free(theirs);
}

// A run on bytes becomes a file with a token for each byte, and goes on as text.
static void a_model_of_bytes(void **state) {
    file_words(state, "words.txt", 4000);
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 16, "
              "\"n_head\": 2, \"n_positions\": 32, \"vocab_size\": 256}, \"data\": "
              "{\"format\": \"bytes\", \"train\": [\"words.txt\"]}, \"steps\": 2, "
              "\"out\": \"out\", \"train_batch_size\": 2, \"optimizer\": {\"type\": "
              "\"AdamW\", \"params\": {\"lr\": 1e-3}}}");
    free(succeed(state, LIST("train", "run.json")));
    outcome o = run(state, LIST("export", "out", "bytes.gguf", "--type", "q8_0"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "the 256 tokens are bytes");
    outcome_free(&o);
    free(succeed(state, LIST("import", "bytes.gguf", "bytes")));
    free(succeed(state, LIST("tokenize", "--tokenizer", "bytes", "words.txt", "--out",
                             "ids.bin", "--dtype", "u16")));
    size_t text_bytes = 0, id_bytes = 0;
    char *text = file_read(state, "words.txt", &text_bytes);
    char *ids = file_read(state, "ids.bin", &id_bytes);
    assert_int_equal(id_bytes, 2 * text_bytes);
    for (size_t i = 0; i < text_bytes; i++) {
        assert_true(ids[2 * i] == text[i] && ids[2 * i + 1] == 0);
    }
    free(text);
    free(ids);
}

static void what_is_wrong_is_said(void **state) {
    fail_with(state, NULL, LIST("export", GOLDEN), 2, LIST("OUT.gguf"));
    fail_with(state, NULL, LIST("export", GOLDEN, "x.gguf", "--type", "q4_0"), 2,
              LIST("the type \"q4_0\" is unknown", "q8_0"));
    fail_with(state, NULL, LIST("export", "nowhere", "x.gguf"), 5, LIST("nowhere"));
    fail_with(state, NULL, LIST("import", "nowhere.gguf", "x"), 5,
              LIST("nowhere.gguf: cannot open"));
    free(succeed(state, LIST("export", GOLDEN, "m.gguf")));
    fail_with(state, NULL, LIST("sample", "m.gguf"), 5,
              LIST("is a GGUF file", "tranche import m.gguf"));
    fail_with(state, NULL, LIST("inspect", "m.gguf"), 5,
              LIST("is a GGUF file", "tranche import"));
    size_t bytes = 0;
    char *data = file_read(state, "m.gguf", &bytes);
    file_write(state, "cut.gguf", data, bytes / 2);
    fail_with(state, NULL, LIST("import", "cut.gguf", "x"), 5,
              LIST("cut.gguf: tensor ", "behind the end of the file"));
    memcpy(data, "GGML", 4);
    file_write(state, "old.gguf", data, bytes);
    fail_with(state, NULL, LIST("import", "old.gguf", "x"), 5, LIST("is no GGUF file"));
    free(data);
    fail_with(state, NULL, LIST("import", "m.gguf", "."), 5, LIST("is not empty"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(there_and_back),
        TEST(a_model_of_bytes),
        TEST(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
