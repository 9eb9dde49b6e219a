// The command line: what it does not understand, it says, with the nearest that it
// does.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wrong {
    const char *arguments[6];
    const char *words[WORDS_MAX];
} wrong;

static void test_wrong_words(void **state) {
    static const wrong all[] = {
        {{"tran"}, {"unknown command tran", "did you mean train?"}},
        {{"zzzzzz"}, {"unknown command zzzzzz", "--help"}},
        {{"--verison"}, {"--verison", "mean --version?"}},
        {{"train"}, {"needs RUN.json", "train --help"}},
        {{"diff", "a"}, {"needs A B"}},
        {{"plan", "run.json", "b"}, {"unexpected argument: b"}},
        {{"train", "run.json", "--hlep"}, {"unknown option --hlep", "mean --help?"}},
        {{"train", "run.json", "--step=3"}, {"unknown option --step=3", "--steps?"}},
        {{"inspect", "--jsno", "x"}, {"unknown option --jsno", "mean --json?"}},
        {{"inspect", "--json=1", "x"}, {"--json takes no value"}},
        {{"train", "run.json", "--steps"}, {"--steps needs a value: N"}},
        {{"train", "run.json", "--steps", "abc"}, {"--steps abc", "whole number", "1"}},
        {{"train", "run.json", "--steps", "3.5"}, {"--steps 3.5", "whole number"}},
        {{"train", "run.json", "--steps", "0"}, {"--steps 0", "1 or more"}},
        {{"train", "run.json", "--steps", "-1"}, {"--steps -1", "1 or more"}},
        {{"train", "run.json", "--steps", ""}, {"--steps ", "whole number"}},
        {{"train", "run.json", "--steps", "99999999999999999999"}, {"--steps 9999"}},
        {{"plan", "run.json", "--ranks", "0"}, {"--ranks 0", "1 or more"}},
        {{"plan", "run.json", "--ranks", "4000000"},
         {"4000000 ranks on the data axis"}},
        {{"sample", "out", "--temperature", "-1"}, {"--temperature -1", "0 or more"}},
        {{"sample", "out", "--temperature", "nan"}, {"--temperature nan"}},
        {{"sample", "out", "--temperature", "1x"}, {"--temperature 1x"}},
        {{"sample", "out", "--tokens", "99999999999"}, {"--tokens", "at most"}},
        {{"train", "run.json", "--set", "seed"}, {"\"seed\" is not KEY.PATH=VALUE"}},
        {{"train", "run.json", "--set", "=3"}, {"--set", "a key of 0 characters"}},
        {{"train", "run.json", "--set", "sede=3"}, {"--set: sede", "mean \"seed\"?"}},
        {{"train", "run.json", "--set", "seed=x"}, {"--set: seed is \"x\"", "integer"}},
        {{"train", "run.json", "--set", "seed.x=1"}, {"--set", "seed"}},
        {{"train", "run.json", "--resume", "atuo"}, {"--resume atuo", "mean auto?"}},
        {{"train", "run.json", "--resume", ""}, {"--resume", "never"}},
        {{"train", "run.json", "--trace-step", "3"}, {"--trace-step", "--trace"}},
        {{"train", "nothere.json"}, {"nothere.json: cannot open: No such file"}},
        {{"train", "."}, {".: not a regular file"}},
        {{"train", "run.json", "--model", "gtp2"}, {"\"gtp2\"", "name is \"gpt2\""}},
        {{"simulate", "run.json", "--machin", "m"}, {"unknown option", "--machine?"}},
        {{"simulate", "run.json", "--machine", "no.json"}, {"no.json: cannot open"}},
    };
    run_file(state, classifier_run, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fail_with(state, NULL, all[i].arguments, 2, all[i].words);
    }
}

static void test_nothing(void **state) {
    outcome o = run(state, LIST(NULL));
    assert_int_equal(o.status, 2);
    assert_string_equal(o.out, "");
    assert_says(o.err, "usage: tranche COMMAND");
    outcome_free(&o);
}

// What users type is never a format.
static void test_formats(void **state) {
    static const char evil[] = "%n%s%n%1000000d%p";
    static const wrong all[] = {
        {{evil}, {evil}},
        {{"train", evil}, {evil}},
        {{"train", "run.json", "--%n%s"}, {"--%n%s"}},
        {{"train", "run.json", "--steps", evil}, {evil}},
        {{"train", "run.json", "--set", evil}, {evil}},
        {{"train", "run.json", "--set", "%n%s=1"}, {"%n%s: no such key"}},
        {{"train", "run.json", "--set", "seed=%n%s"}, {"seed is \"%n%s\""}},
        {{"train", "run.json", "--model", evil}, {evil}},
        {{"train", "run.json", "--resume", evil}, {evil}},
        {{"plan", "run.json", evil}, {evil}},
    };
    static const char *const files[] = {"inspect", "sample"};
    run_file(state, classifier_run, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fail_with(state, NULL, all[i].arguments, 2, all[i].words);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fail_with(state, NULL, LIST(files[i], evil), 5, LIST(evil));
    }
    fail_with(state, NULL, LIST("diff", evil, evil), 5, LIST(evil));
    free(succeed(state, LIST("train", "run.json", "--out", evil)));
    free(succeed(state, LIST("inspect", evil)));
}

// Nor does it get into a terminal.
static void test_control_characters(void **state) {
    static const char bad[] = "a\x1b[31mred\r\n\x07";
    run_file(state, classifier_run, "");
    fail_with(state, NULL, LIST(bad), 2, LIST("a?[31mred???"));
    fail_with(state, NULL, LIST("train", bad), 2, LIST("a?[31mred???"));
    fail_with(state, NULL, LIST("plan", "run.json", "--model", bad), 2, LIST("a?[31m"));
    fail_with(state, NULL, LIST("inspect", bad), 5, LIST("a?[31mred???"));
}

static void test_long_words(void **state) {
    enum { LONG = 100000 };
    static char word[LONG], option[LONG], set[LONG];
    memset(word, 'x', LONG - 1);
    snprintf(option, sizeof option, "--%.*s", LONG - 10, word);
    snprintf(set, sizeof set, "out=%.*s", LONG - 10, word);
    run_file(state, classifier_run, "");
    const wrong all[] = {
        {{word}, {"unknown command xxx", "xxx..."}},
        {{"train", word}, {"xxx"}},
        {{"train", "run.json", word}, {"unexpected argument: xxx"}},
        {{"train", "run.json", option}, {"unknown option --xxx"}},
        {{"train", "run.json", "--steps", word}, {"--steps xxx"}},
        {{"train", "run.json", "--set", word}, {"--set: \"xxx"}},
        {{"train", "run.json", "--model", word}, {"model \"xxx"}},
        {{"train", "run.json", "--resume", word}, {"--resume xxx"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fail_with(state, NULL, all[i].arguments, 2, all[i].words);
    }
    fail_with(state, NULL, LIST("train", "run.json", "--out", word), 5, LIST("xxx"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", set), 5, LIST("xxx"));
    fail_with(state, NULL, LIST("inspect", word), 5, LIST("xxx"));
}

static void test_too_many(void **state) {
    const char *arguments[150] = {"plan", "run.json"};
    for (int i = 0; i < 70; i++) {
        arguments[2 + 2 * i] = "--set";
        arguments[3 + 2 * i] = "seed=1";
    }
    run_file(state, classifier_run, "");
    fail_with(state, NULL, arguments, 2, LIST("--set given more than 64 times"));
}

// "--" ends the options, so that any name can be an operand.
static void test_end_of_options(void **state) {
    file_text(state, "--json", "text");
    char *out = succeed(state, LIST("inspect", "--", "--json"));
    assert_says(out, "4 bytes");
    free(out);
}

static void test_full_output(void **state) {
    static const setting full = {.out = "/dev/full"};
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    const char *const no_room[] = {"cannot write to standard output", NULL};
    fail_with(state, &full, LIST("--help"), 5, no_room);
    fail_with(state, &full, LIST("plan", "run.json", "--json"), 5, no_room);
    fail_with(state, &full, LIST("inspect", "out"), 5, no_room);
    fail_with(state, &full, LIST("diff", "out", "out"), 5, no_room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_wrong_words),        TEST(test_nothing),     TEST(test_formats),
        TEST(test_control_characters), TEST(test_long_words),  TEST(test_too_many),
        TEST(test_end_of_options),     TEST(test_full_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
