// tranche tokenize: files to ids and back.
#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPT2 TR_TEST_DATA "/tokenizers/gpt2.json"

static void test_there_and_back(void **state) {
    file_text(state, "a.txt", "the man said: it's naïve\n");
    file_text(state, "b.txt", "\n  漢字 <|end|>");
    char *said = succeed(state, LIST("tokenize", "--tokenizer", GPT2, "a.txt", "b.txt",
                                     "--out", "ids.bin"));
    assert_says(said, "tokens from");
    assert_says(said, "u16: ids.bin");
    free(said);
    char *text =
        succeed(state, LIST("tokenize", "--tokenizer", GPT2, "--decode", "ids.bin"));
    assert_string_equal(text, "the man said: it's naïve\n\n  漢字 <|end|>");
    free(text);
}

static void test_dtypes(void **state) {
    size_t narrow, wide;
    file_words(state, "a.txt", 3000);
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--out", "n")));
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--out", "w",
                             "--dtype", "u32")));
    char *ids = file_read(state, "n", &narrow), *ids32 = file_read(state, "w", &wide);
    assert_int_equal(wide, 2 * narrow);
    for (size_t i = 0; i < narrow / 2; i++) {
        assert_memory_equal(ids + 2 * i, ids32 + 4 * i, 2);
        assert_memory_equal(ids32 + 4 * i + 2, "\0", 2);
    }
    free(ids);
    free(ids32);
    char *text = succeed(state, LIST("tokenize", "--tokenizer", GPT2, "--decode", "w",
                                     "--dtype", "u32"));
    char *from = file_read(state, "a.txt", &narrow);
    assert_string_equal(text, from);
    free(text);
    free(from);
}

// A file of the other width is noticed, whatever was said.
static void test_wrong_width(void **state) {
    size_t bytes;
    file_words(state, "a.txt", 3000);
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--out", "n")));
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--out", "w",
                             "--dtype", "u32")));
    char *from = file_read(state, "a.txt", &bytes);
    outcome o = run(state, LIST("tokenize", "--tokenizer", GPT2, "--decode", "w"));
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, from);
    assert_says(o.err,
                "w: taken as ids of u32, because as u16 every second id would be 0");
    outcome_free(&o);
    free(from);
    fail_with(state, NULL,
              LIST("tokenize", "--tokenizer", GPT2, "--decode", "w", "--dtype", "u16"),
              4, LIST("w: its ids are u32", "say --dtype u32"));
    fail_with(state, NULL,
              LIST("tokenize", "--tokenizer", GPT2, "--decode", "n", "--dtype", "u32"),
              4, LIST("n: id ", "all are as u16: say --dtype u16"));
    // 21 as u32, or 21 and 0 as u16
    file_write(state, "few", "\x15\0\0\0", 4);
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", GPT2, "--decode", "few"), 4,
              LIST("few: may be 2 ids of u16, every second one 0, or 1 of u32"));
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "--decode", "few",
                             "--dtype", "u16")));
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "--decode", "few",
                             "--dtype", "u32")));
}

// A special token in the text is one id, or text; those of the template are asked for.
static void test_special(void **state) {
    size_t bytes;
    const char *llama3 = TR_TEST_DATA "/tokenizers/llama3.json";
    file_text(state, "a.txt", "<|end|>");
    free(
        succeed(state, LIST("tokenize", "--tokenizer", llama3, "a.txt", "--out", "i")));
    free(file_read(state, "i", &bytes));
    assert_int_equal(bytes, 2);
    free(succeed(state, LIST("tokenize", "--tokenizer", llama3, "a.txt", "--out", "i",
                             "--special")));
    free(file_read(state, "i", &bytes));
    assert_int_equal(bytes, 4);
    free(succeed(state, LIST("tokenize", "--tokenizer", llama3, "a.txt", "--out", "i",
                             "--plain-special")));
    free(file_read(state, "i", &bytes));
    assert_true(bytes > 4);
    char *text =
        succeed(state, LIST("tokenize", "--tokenizer", llama3, "--decode", "i"));
    assert_string_equal(text, "<|end|>");
    free(text);
}

// A folder stands for its tokenizer.json.
static void test_folder(void **state) {
    file_text(state, "a.txt", "the");
    free(succeed(state, LIST("tokenize", "--tokenizer", GPT2, "a.txt")));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", ".", "a.txt"), 5,
              LIST("tokenizer.json"));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", "nowhere", "a.txt"), 5,
              LIST("nowhere"));
}

static void test_refusals(void **state) {
    file_text(state, "a.txt", "the");
    file_text(state, "odd.bin", "abc");
    file_text(state, "high.bin", "\xff\xff");
    file_text(state, "unigram.json", "{\"model\": {\"type\": \"Unigram\"}}");
    fail_with(state, NULL, LIST("tokenize", "a.txt"), 2, LIST("--tokenizer"));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", GPT2), 2, LIST("FILE"));
    fail_with(state, NULL,
              LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--dtype", "u8"), 2,
              LIST("u16 or u32"));
    fail_with(state, NULL,
              LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--decode", "odd.bin"), 2,
              LIST("--decode"));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", GPT2, "nothing"), 4,
              LIST("nothing"));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", GPT2, "--decode", "odd.bin"),
              4, LIST("whole number of ids"));
    fail_with(state, NULL,
              LIST("tokenize", "--tokenizer", GPT2, "--decode", "high.bin"), 4,
              LIST("id 65535", "number 0"));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", "unigram.json", "a.txt"), 4,
              LIST("unigram.json: model", "Unigram", "not supported"));
}

// What cannot be written leaves nothing behind.
static void test_full(void **state) {
    setting full = {.file_limit = 1000};
    file_words(state, "a.txt", 20000);
    fail_with(state, &full,
              LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--out", "i"), 5,
              LIST("i: cannot write"));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", GPT2, "--decode", "i"), 5,
              LIST("i: "));
    fail_with(state, NULL, LIST("tokenize", "--tokenizer", GPT2, "--decode", "i.new"),
              5, LIST("i.new: "));
}

// A link, a pipe or a folder at the file's name is left as it is, and said before the
// work.
static void test_out_is_taken(void **state) {
    file_text(state, "a.txt", "the");
    file_text(state, "victim", "precious");
    assert_int_equal(symlink("victim", file_path(state, "link")), 0);
    assert_int_equal(mkfifo(file_path(state, "pipe"), 0600), 0);
    assert_int_equal(mkdir(file_path(state, "folder"), 0700), 0);
    for (const char *const *out = LIST("link", "pipe", "folder"); *out; out++) {
        struct stat before, after;
        assert_int_equal(lstat(file_path(state, *out), &before), 0);
        fail_with(state, NULL,
                  LIST("tokenize", "--tokenizer", GPT2, "a.txt", "--out", *out), 5,
                  LIST(*out, "not a regular file"));
        assert_int_equal(lstat(file_path(state, *out), &after), 0);
        assert_int_equal(before.st_mode, after.st_mode);
    }
    char *text = file_read(state, "victim", NULL);
    assert_string_equal(text, "precious");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_there_and_back), TEST(test_dtypes),       TEST(test_wrong_width),
        TEST(test_special),        TEST(test_folder),       TEST(test_refusals),
        TEST(test_full),           TEST(test_out_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
