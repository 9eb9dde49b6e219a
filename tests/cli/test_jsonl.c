// Labels: ranks
// Training on records: cuts and ranks change nothing, damaged records end a run, and
// samples are shown as they are trained.
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char run_text[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 16, "
    "\"n_head\": 2, \"n_positions\": 48},\n"
    " \"data\": {\"format\": \"jsonl\", \"train\": [\"chats.jsonl\"], \"tokenizer\": "
    "\"tok\", \"loss_on\": \"assistant\"},\n"
    " \"steps\": 5, \"seed\": 3, \"out\": \"out\", \"train_batch_size\": 6}";

static void write_chats(void **state, const char *more) {
    enum { ROOM = 1 << 14 };
    char *text = calloc(1, ROOM);
    size_t at = 0;
    assert_non_null(text);
    for (int i = 0; i < 20; i++) {
        at += (size_t)snprintf(
            text + at, ROOM - at,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"the men %d\"}, "
            "{\"role\": \"assistant\", \"content\": \"said that %d\"}]}\n",
            i, i * i);
    }
    snprintf(text + at, ROOM - at, "%s", more);
    file_text(state, "chats.jsonl", text);
    free(text);
}

static int chats_make(void **state) {
    if (folder_make(state) != 0 ||
        setenv("XDG_CACHE_HOME", file_path(state, "cache"), 1) != 0 ||
        mkdir(file_path(state, "tok"), 0777) != 0) {
        return -1;
    }
    FILE *from = fopen(TR_TEST_DATA "/tokenizers/smollm.json", "rb");
    char text[1 << 16];
    assert_non_null(from);
    size_t bytes = fread(text, 1, sizeof text, from);
    fclose(from);
    file_write(state, "tok/tokenizer.json", text, bytes);
    file_text(state, "tok/tokenizer_config.json",
              "{\"eos_token\": {\"content\": \"<|end|>\"}, \"chat_template\": "
              "\"{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}"
              "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}\"}");
    file_text(state, "run.json", run_text);
    write_chats(state, "");
    return 0;
}

static double last_loss(void **state) {
    size_t bytes;
    char *text = file_read(state, "out/metrics.jsonl", &bytes), *last = text;
    for (char *at = text; (at = strstr(at, "\"loss\"")) != NULL; at++) {
        last = at;
    }
    double loss = strtod(strchr(last, ':') + 1, NULL);
    free(text);
    return loss;
}

static void train(void **state, const char *micro, const char *ranks) {
    char set[64];
    snprintf(set, sizeof set, "train_micro_batch_size_per_gpu=%s", micro);
    const setting shell = {.program = "/bin/sh"};
    outcome o = run_with(state, &shell, LIST("-c", "rm -rf out"));
    outcome_free(&o);
    o = run(state, LIST("train", "run.json", "--set", set, "--ranks", ranks));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    assert_says(o.out, "tranche sample out --chat --prompt \"Hello\"\n");
    outcome_free(&o);
}

static void test_cuts_and_ranks(void **state) {
    train(state, "6", "1");
    double whole = last_loss(state);
    train(state, "1", "1");
    assert_true(last_loss(state) - whole < 1e-5 && whole - last_loss(state) < 1e-5);
    train(state, "1", "2");
    assert_true(last_loss(state) - whole < 1e-5 && whole - last_loss(state) < 1e-5);
}

static void test_damaged(void **state) {
    write_chats(state, "{\"messages\": [\n");
    fail_with(state, NULL, LIST("train", "run.json"), 4,
              LIST("chats.jsonl:21: column ", "not valid JSON"));
    write_chats(state, "{\"text\": \"the men\"}\n");
    fail_with(state, NULL, LIST("train", "run.json"), 4,
              LIST("chats.jsonl:21: the record is one of texts"));
    write_chats(state, "");
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.loss_on=user"), 2,
              LIST("data.loss_on"));
    file_text(state, "tok/tokenizer_config.json", "{}");
    fail_with(state, NULL, LIST("train", "run.json"), 4,
              LIST("chats.jsonl:1: the records are conversations, and ",
                   "has no chat template"));
}

// Records that share rows are all there, with what is learnt of them.
static void test_packed(void **state) {
    char *text = succeed(state, LIST("inspect", "run.json", "--samples", "99", "--set",
                                     "data.packing=true"));
    char words[128];
    for (int i = 0; i < 20; i++) {
        snprintf(words, sizeof words,
                 "user: the men %d<|end|>assistant:\xe2\x9f\xa6 said that %d<|end|>"
                 "\xe2\x9f\xa7",
                 i, i * i);
        assert_says(text, words);
    }
    assert_says(text, "\n---\n");
    free(text);
    outcome o = run(state, LIST("train", "run.json", "--set", "data.packing=true"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "20 documents packed into");
    outcome_free(&o);
}

static void train_packed(void **state, const char *out, const char *steps,
                         const char *wave, const char *ranks) {
    char set[32];
    snprintf(set, sizeof set, "execution.wave=%s", wave);
    free(
        succeed(state, LIST("train", "run.json", "--out", out, "--steps", steps,
                            "--ranks", ranks, "--set", set, "--set",
                            "data.packing=true", "--set", "execution.reproducible=true",
                            "--set", "train_micro_batch_size_per_gpu=1")));
}

// Neither ranks nor waves nor a run that is resumed change a bit.
static void test_packed_bits(void **state) {
    static const char weights[] = "once/checkpoints/latest/model.safetensors";
    train_packed(state, "once", "5", "1", "1");
    train_packed(state, "again", "2", "3", "1");
    train_packed(state, "again", "5", "2", "1");
    train_packed(state, "ranks", "5", "1", "2");
    assert_same_file(state, weights, "again/checkpoints/latest/model.safetensors");
    assert_same_file(state, weights, "ranks/checkpoints/latest/model.safetensors");
}

static void test_samples(void **state) {
    char *text = succeed(state, LIST("inspect", "run.json", "--samples", "1", "--set",
                                     "data.order=sequential"));
    assert_says(text, "sample 0: ");
    assert_says(text, "user: the men 0<|end|>assistant:\xe2\x9f\xa6 said that "
                      "0<|end|>\xe2\x9f\xa7");
    free(text);
    json_t *root =
        succeed_json(state, LIST("inspect", "run.json", "--samples", "99", "--json"));
    json_t *samples = json_object_get(root, "samples");
    assert_int_equal(json_array_size(samples), 20);
    for (size_t i = 0; i < 20; i++) {
        json_t *one = json_array_get(samples, i);
        json_t *labels = json_object_get(one, "labels");
        assert_int_equal(json_array_size(json_object_get(one, "input_ids")), 48);
        assert_int_equal(json_array_size(labels), 48);
        assert_int_equal(json_integer_value(json_array_get(labels, 0)), -100);
    }
    json_decref(root);
    // As a run trains it: a vocabulary that is too small grows, and one of none is
    // open.
    free(succeed(state, LIST("inspect", "run.json", "--samples", "1", "--set",
                             "model.vocab_size=300")));
    fail_with(state, NULL, LIST("inspect", "chats.jsonl", "--samples", "1"), 2,
              LIST("chats.jsonl"));
    fail_with(state, NULL, LIST("inspect", "run.json", "--set", "seed=1"), 2,
              LIST("--set", "--samples"));
}

// An answer is what follows the text that the template makes.
static void test_chat(void **state) {
    train(state, "6", "1");
    static const char prompt[] = "user: the men 1<|end|>assistant: ";
    char *plain = succeed(state, LIST("sample", "out", "--prompt", prompt, "--tokens",
                                      "6", "--temperature", "0"));
    char *chat = succeed(state, LIST("sample", "out", "--chat", "--prompt", "the men 1",
                                     "--tokens", "6", "--temperature", "0"));
    assert_memory_equal(plain, prompt, strlen(prompt));
    assert_string_equal(chat, plain + strlen(prompt));
    free(plain);
    // Two turns, the second of which goes on from the first.
    const setting shell = {.program = "/bin/sh"};
    outcome o = run_with(state, &shell,
                         LIST("-c", "printf 'the men 1\\n\\nand\\n' | '" TR_PROGRAM
                                    "' sample out --chat --tokens 6 --temperature 0"));
    assert_int_equal(o.status, 0);
    assert_memory_equal(o.out, chat, strlen(chat));
    assert_true(strlen(o.out) > strlen(chat));
    outcome_free(&o);
    free(chat);
    fail_with(state, NULL, LIST("sample", "out", "--system", "x"), 2,
              LIST("--system", "--chat"));
    o = run_with(state, &shell, LIST("-c", "mkdir bare && cp tok/tokenizer.json bare"));
    outcome_free(&o);
    fail_with(state, NULL, LIST("sample", "out", "--chat", "--tokenizer", "bare"), 4,
              LIST("has no chat template"));
}

// An answer ends with the tokenizer's token, whatever the model's folder says: here
// with the last digit that the model would say.
static void test_end_of_answer(void **state) {
    const char *const *ask =
        LIST("sample", "out", "--chat", "--prompt", "the men 1", "--tokens", "30",
             "--temperature", "0", "--tokenizer", "tok");
    free(succeed(state, LIST("train", "run.json", "--set", "optimizer.params.lr=0.02",
                             "--steps", "40")));
    char config[512], *whole = succeed(state, ask);
    char last = whole[strlen(whole) - 2];
    assert_in_range(last, '0', '9');
    snprintf(config, sizeof config,
             "{\"eos_token\": \"%c\", \"chat_template\": \"{%% for m in messages %%}"
             "{{ m.role }}: {{ m.content }}<|end|>{%% endfor %%}assistant: \"}",
             last);
    file_text(state, "tok/tokenizer_config.json", config);
    char *ended = succeed(state, ask);
    size_t length = strlen(ended) - 1; // without the end of the line
    assert_memory_equal(ended, whole, length);
    assert_int_equal(whole[length], last);
    assert_null(memchr(ended, last, length));
    free(whole);
    free(ended);
}

// The next turn sees an answer up to the text of --stop: this template refuses more.
static void test_stop_text(void **state) {
    char config[512], command[256];
    free(succeed(state, LIST("train", "run.json", "--set", "optimizer.params.lr=0.02",
                             "--steps", "40")));
    char *whole = succeed(state, LIST("sample", "out", "--chat", "--prompt",
                                      "the men 1", "--temperature", "0"));
    char last = whole[strlen(whole) - 2];
    free(whole);
    snprintf(config, sizeof config,
             "{\"eos_token\": \"<|end|>\", \"chat_template\": \"{%% for m in messages "
             "%%}{%% if m.role == 'assistant' and '%c' in m.content %%}"
             "{{ raise_exception('more') }}{%% endif %%}{{ m.role }}: {{ m.content }}"
             "<|end|>{%% endfor %%}assistant: \"}",
             last);
    file_text(state, "tok/tokenizer_config.json", config);
    snprintf(command, sizeof command,
             "printf 'the men 1\\nand\\n' | '%s' sample out --chat --tokenizer tok "
             "--temperature 0 --stop %c",
             TR_PROGRAM, last);
    const setting shell = {.program = "/bin/sh"};
    outcome o = run_with(state, &shell, LIST("-c", command));
    assert_string_equal(o.err, "");
    assert_int_equal(o.status, 0);
    outcome_free(&o);
}

// A checkpoint has the template that it was trained with, and answers by it.
static void test_other_template(void **state) {
    static const char saved[] = "out/checkpoints/latest/chat_template.jinja";
    file_text(state, "tok/chat_template.jinja", "of the tokenizer");
    file_text(state, "other.jinja",
              "{% for m in messages %}{{ m.content }}{% endfor %}");
    free(succeed(state, LIST("train", "run.json", "--set", "data.loss_on=all", "--set",
                             "data.chat_template=other.jinja")));
    assert_same_file(state, "other.jinja", saved);
    char *plain = succeed(state, LIST("sample", "out", "--prompt", "the men",
                                      "--tokens", "6", "--temperature", "0"));
    char *chat = succeed(state, LIST("sample", "out", "--chat", "--prompt", "the men",
                                     "--tokens", "6", "--temperature", "0"));
    assert_string_equal(chat, plain + strlen("the men"));
    free(plain);
    free(chat);
}

// Weights know the ids of the tokenizer beside them: another one is warned of.
static void test_other_tokenizer(void **state) {
    static const char other[] = "data.tokenizer=" TR_TEST_DATA "/tokenizers/gpt2.json";
    train(state, "6", "1");
    file_text(state, "t.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    outcome o = run(state, LIST("train", "run.json", "--set", "model=out", "--set",
                                other, "--set", "data.chat_template=t.jinja", "--set",
                                "data.loss_on=all", "--out", "b", "--steps", "1"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "warning: data.tokenizer: ");
    assert_says(o.err, "gpt2.json has another vocabulary than the tokenizer of the "
                       "model's folder (");
    outcome_free(&o);
    o = run(state, LIST("train", "run.json", "--set", "model=out", "--out", "c",
                        "--steps", "1"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "another vocabulary"));
    outcome_free(&o);
}

#define CHATS(name) cmocka_unit_test_setup_teardown(name, chats_make, folder_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        CHATS(test_cuts_and_ranks),  CHATS(test_damaged),       CHATS(test_samples),
        CHATS(test_packed),          CHATS(test_packed_bits),   CHATS(test_chat),
        CHATS(test_other_template),  CHATS(test_end_of_answer), CHATS(test_stop_text),
        CHATS(test_other_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
