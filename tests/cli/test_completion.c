// What shells complete and what manual pages say: every command, option, key and value
// that there is, each with the words of its table.
#include "command.h"

#include "draws.h"
#include "run/keys/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, COMMANDS_MIN = 18, OPTIONS_MIN = 90, KEYS_MIN = 200 };

// ---- helpers

// What the shells are told for a line, to be freed.
static char *complete(void **state, const char *a, const char *b, const char *c,
                      const char *d) {
    const char *const all[] = {"completion", "bash", "--", a, b, c, d, NULL};
    return succeed(state, all);
}

// Does the text have this line, or one that begins with it where it ends with a tab?
static bool has_line(const char *text, const char *line) {
    size_t length = strlen(line);
    for (const char *at = text; at; at = strchr(at, '\n'), at += at != NULL) {
        if (strncmp(at, line, length) == 0 &&
            (at[length] == '\n' || line[length - 1] == '\t')) {
            return true;
        }
    }
    return false;
}

static void assert_line(const char *text, const char *line) {
    if (!has_line(text, line)) {
        print_error("no line \"%s\" in:\n%s\n", line, text);
        fail();
    }
}

// A line of a text; returns what follows it, NULL at the end.
static const char *next_line(const char *at, char *line) {
    size_t length = strcspn(at, "\n");
    assert_true(length < LINE);
    memcpy(line, at, length);
    line[length] = '\0';
    return at[length] ? at + length + 1 : NULL;
}

// The text as the pages have it.
static void to_roff(const char *text, char *roff) {
    for (; *text; text++) {
        if (*text == '-' || *text == '\\') {
            *roff++ = '\\';
        }
        *roff++ = *text == '\\' ? 'e' : *text;
    }
    *roff = '\0';
}

// Calls `visit` for each command, as the program's help has them; returns how many.
static int visit_commands(void **state, void (*visit)(void **state, const char *name,
                                                      const char *doc)) {
    char *help = succeed(state, LIST("--help")), line[LINE], name[LINE];
    int count = 0;
    for (const char *at = help; (at = next_line(at, line)) != NULL;) {
        const char *doc = line + strlen(line);
        if (strncmp(line, "    ", 4) != 0 || sscanf(line + 4, "%[a-z]", name) != 1) {
            continue;
        }
        while (doc > line && strncmp(doc, "  ", 2) != 0) {
            doc--;
        }
        visit(state, name, doc + 2);
        count++;
    }
    free(help);
    return count;
}

// ---- options

// What the help shows for a value, and a line of what completes it; NULL: nothing does,
// because it is a number or a text.
static const struct {
    const char *form, *line;
} forms[] = {
    {"KEY.PATH=VALUE", "seed=\tof weights, data order and dropout"},
    {"FORMAT", "jsonl\t"},
    {"auto|never|DIR", "never\t"},
    {"FILE|here", "here\t"},
    {"u16|u32", "u32\t"},
    {"f32|f16|bf16|q8_0", "q8_0\t"},
    {"f32|bf16|fp16", "fp16\t"},
    {"cpu|cuda|cuda:N", "cuda\t"},
    {"PATH", ":files"},
    {"FILE", ":files"},
    {"IDS", ":files"},
    {"FILE|DIR|NAME", ":files"},
    {"DIR|FILE|NAME", ":files"},
    {"DIR", ":folders"},
    {"DIR|NAME", ":folders"},
    {"FILE.npy", ":files .npy"},
    {"FILE.svg", ":files .svg"},
    {"FILE.html", ":files .html"},
    {"FILE.json", ":files .json"},
    {"N", NULL},
    {"W", NULL},
    {"X", NULL},
    {"K", NULL},
    {"P", NULL},
    {"TEXT", NULL},
};

static void check_value(void **state, const char *command, const char *option,
                        const char *form) {
    char *answer = complete(state, command, option, "", NULL), joined[LINE];
    size_t i = 0, count = sizeof forms / sizeof *forms;
    while (i < count && strcmp(forms[i].form, form) != 0) {
        i++;
    }
    if (i == count) {
        print_error("tranche %s %s %s: say here what completes it\n", command, option,
                    form);
        fail();
    }
    if (!forms[i].line) {
        assert_string_equal(answer, "");
    } else {
        assert_line(answer, forms[i].line);
    }
    free(answer);
    if (forms[i].line && forms[i].line[0] != ':') { // the same behind "="
        snprintf(joined, sizeof joined, "%s=", option);
        answer = complete(state, command, joined, NULL, NULL);
        snprintf(joined, sizeof joined, "%s=%s", option, forms[i].line);
        assert_line(answer, joined);
        free(answer);
    }
}

static int options_seen;

static void check_options(void **state, const char *command, const char *doc) {
    (void)doc;
    char *help = succeed(state, LIST(command, "--help")), line[LINE], roff[2 * LINE];
    char *page = succeed(state, LIST("manual", command));
    char *answer = complete(state, command, "--", NULL, NULL);
    for (const char *at = help; (at = next_line(at, line)) != NULL;) {
        char name[LINE], form[LINE] = "", *words = line + 33;
        if (sscanf(line, "    --%[a-z0-9-]%*1[ ]%[^ ]", name, form) < 1) {
            continue;
        }
        char option[LINE + 2], whole[2 * LINE + 4];
        snprintf(option, sizeof option, "--%s", name);
        if (strlen(name) + 2 + strlen(form) + 1 > 28) { // no column is left for it
            words = line + 4 + strlen(option) + 1 + strlen(form) + 1;
        }
        snprintf(whole, sizeof whole, "%s\t%s", option, words);
        assert_line(answer, whole);
        to_roff(option, roff);
        assert_says(page, roff);
        to_roff(words, roff);
        assert_says(page, roff);
        if (form[0]) {
            check_value(state, command, option, form);
        }
        options_seen++;
    }
    free(answer);
    free(page);
    free(help);
}

static void test_options(void **state) {
    options_seen = 0;
    assert_true(visit_commands(state, check_options) >= COMMANDS_MIN);
    assert_true(options_seen >= OPTIONS_MIN);
}

// ---- commands

static void check_command(void **state, const char *name, const char *doc) {
    char *all = complete(state, "", NULL, NULL, NULL), line[LINE], roff[2 * LINE];
    char *page = succeed(state, LIST("manual"));
    snprintf(line, sizeof line, "%s\t%s", name, doc);
    assert_line(all, line);
    to_roff(doc, roff);
    assert_says(page, roff);
    char *pages = complete(state, "manual", name, NULL, NULL);
    assert_line(pages, line);
    free(pages);
    free(page);
    free(all);
}

static void test_commands(void **state) {
    assert_true(visit_commands(state, check_command) >= COMMANDS_MIN);
    char *some = complete(state, "tr", NULL, NULL, NULL);
    assert_true(has_line(some, "train\t") && !has_line(some, "plan\t"));
    free(some);
}

// ---- keys

static void check_texts(void **state, const tr_key *key) {
    char begin[LINE], line[2 * LINE];
    snprintf(begin, sizeof begin, "%s=", key->path);
    char *answer = complete(state, "train", "run.json", "--set", begin);
    for (size_t i = 0; key->choices && key->choices[i]; i++) {
        snprintf(line, sizeof line, "%s%s\t", begin, key->choices[i]);
        assert_line(answer, line);
    }
    if (key->types & TR_KEY_BOOL) {
        snprintf(line, sizeof line, "%sfalse\t", begin);
        assert_line(answer, line);
    }
    if (key->allow_auto) {
        snprintf(line, sizeof line, "%sauto\t", begin);
        assert_line(answer, line);
    }
    free(answer);
}

static void test_keys(void **state) {
    char *all = complete(state, "plan", "--set", "", NULL);
    char *page = succeed(state, LIST("manual", "run-file"));
    char line[LINE], roff[2 * LINE];
    const tr_key *key;
    int works = 0;
    for (size_t i = 0; (key = tr__key_at(tr__key_tables, TR_KEY_TABLES, i)); i++) {
        if (key->status != TR_KEY_WORKS) {
            continue;
        }
        works++;
        to_roff(key->doc, roff);
        assert_says(page, roff);
        snprintf(line, sizeof line, "\\fB%s\\fR\nTakes ", key->path);
        assert_says(page, line);
        if (strchr(key->path, '*')) {
            continue;
        }
        snprintf(line, sizeof line, "%s=\t", key->path);
        assert_line(all, line);
        // The program starts anew for each of these: a sanitizer sees the same code.
        bool told = key->choices || key->allow_auto || key->types & TR_KEY_BOOL;
        if (told && works % TEST_DRAWS(1, 8) == 0) {
            check_texts(state, key);
        }
    }
    assert_true(works >= KEYS_MIN);
    assert_says(page, "\nSince 0.1.0.\n");
    assert_says(page, "\nIn DeepSpeed: same.\n");
    assert_says(page, "\nIn DeepSpeed: differs: ");
    assert_line(all, ":open");
    assert_null(strstr(all, "optimizer.groups.*"));
    free(page);
    free(all);
}

// ---- places of a line

static void test_places(void **state) {
    static const struct {
        const char *words[4];
        const char *line; // NULL: nothing comes there
    } all[] = {
        {{"train", ""}, ":files .json"},
        {{"train", "run.json", ""}, NULL},
        {{"train", "--steps", "3", ""}, ":files .json"},
        {{"train", "--quiet", ""}, ":files .json"},
        {{"train", "--out=x", ""}, ":files .json"},
        {{"export", "out", ""}, ":files .gguf"},
        {{"export", ""}, ":folders"},
        {{"diff", "a", ""}, ":files"},
        {{"diff", "a", "b", ""}, NULL},
        {{"plot", "a", "b", ""}, ":folders"},
        {{"report", ""}, ":folders"},
        {{"calibrate", ""}, ":files .json"},
        {{"inspect", "--", "--"}, ":files"},
        {{"inspect", "--json", "--s"}, "--samples\t"},
        {{"completion", ""}, "fish\t"},
        {{"nothing", ""}, NULL},
        {{"train", "--nothing", ""}, ":files .json"},
        {{"train", "--nothing=", NULL}, NULL},
        {{"train", "--set", "nothing="}, NULL},
        {{"train", "--set=optimizer.type=L"}, "--set=optimizer.type=Lion\t"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *const *w = all[i].words;
        char *answer = complete(state, w[0], w[1], w[2], w[2] ? w[3] : NULL);
        if (all[i].line) {
            assert_line(answer, all[i].line);
        } else {
            assert_string_equal(answer, "");
        }
        free(answer);
    }
}

static void test_wrong(void **state) {
    fail_with(state, NULL, LIST("completion"), 2, LIST("needs bash|zsh|fish"));
    fail_with(state, NULL, LIST("completion", "bahs"), 2, LIST("bahs", "mean bash?"));
    fail_with(state, NULL, LIST("manual", "trian"), 2, LIST("trian", "mean train?"));
    fail_with(state, NULL, LIST("manual", "%n%s"), 2, LIST("%n%s", "no such page"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_options), TEST(test_commands), TEST(test_keys),
        TEST(test_places),  TEST(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
