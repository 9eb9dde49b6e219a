// Files made to mislead are refused with the right words; texts made to be slow are
// not.
#include "support.h"

#include <stdio.h>
#include <string.h>

// A BPE of "a", "b", "ab" with one more part.
#define BPE                                                                            \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":"     \
    "[\"a b\"]}"
#define WITH(part)  "{" part "," BPE "}"
#define MODEL(rest) "{\"model\":{\"type\":\"BPE\"," rest "}}"
#define ADDED(content, id)                                                             \
    WITH("\"added_tokens\":[{\"content\":" content ",\"id\":" id "}]")
#define SPLIT(pattern)                                                                 \
    WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":" pattern                  \
         ",\"behavior\":\"Isolated\"}")

static const struct {
    const char *file;
    const char *words; // NULL: legal
} cases[] = {
    // legal, to know that the forms above are
    {"{" BPE "}", NULL},
    {ADDED("\"c\"", "3"), NULL},
    {ADDED("\"ab\"", "2"), NULL},
    {SPLIT("{\"String\":\"a\"}"), NULL},
    {SPLIT("{\"Regex\":\"a+?\"}"), NULL},
    {MODEL("\"vocab\":{},\"merges\":[]"), NULL},
    {MODEL("\"vocab\":{\"a\":16777215},\"merges\":[]"), NULL},
    // not a tokenizer
    {"", "not valid JSON"},
    {"[]", "is not an object"},
    {"{}", "model: is missing"},
    {"{\"model\":[]}", "model: is not an object"},
    {"{\"model\":{\"type\":3}}", "model.type: is not a string"},
    {"{\"model\":{\"type\":\"Unigram\"}}", "model: the type \"Unigram\" is not"},
    {"{\"model\":1,\"model\":1}", "duplicate"},
    // vocabularies
    {MODEL("\"vocab\":[],\"merges\":[]"), "model.vocab: is not an object"},
    {MODEL("\"vocab\":{\"a\":-1},\"merges\":[]"), "-1 is not between 0"},
    {MODEL("\"vocab\":{\"a\":16777216},\"merges\":[]"), "16777216 is not between"},
    {MODEL("\"vocab\":{\"a\":0.5},\"merges\":[]"), "is not an integer"},
    {MODEL("\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]"), "two tokens have the id 0"},
    // merges
    {MODEL("\"vocab\":{\"a\":0}"), "model.merges: is missing"},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":[\"a a\"]"), "merges[0]: what it makes"},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":[\"a\"]"), "two tokens and a blank"},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":[\"a  a\"]"), "two tokens and a blank"},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]"), "has 1 parts, not 2"},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":[[\"a\",1]]"), "merges[0][1]: is not a str"},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":[\"a x\"]"), "\"x\" is not in the vocab"},
    // options of the model
    {MODEL("\"vocab\":{},\"merges\":[],\"dropout\":0.1"), "model.dropout"},
    {MODEL("\"vocab\":{},\"merges\":[],\"unk_token\":\"u\""), "not in the vocabulary"},
    {MODEL("\"vocab\":{},\"merges\":[],\"fuse_unk\":1"), "fuse_unk: is not true or"},
    {MODEL("\"vocab\":{\"<0x00>\":0},\"merges\":[],\"byte_fallback\":true"),
     "1 of the"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "unk_token: is missing"},
    // added tokens
    {WITH("\"added_tokens\":{}"), "added_tokens: is not an array"},
    {WITH("\"added_tokens\":[1]"), "added_tokens[0]: is not an object"},
    {ADDED("\"\"", "3"), "has 0 bytes"},
    {ADDED("\"c\"", "4"), "the id is 4, but the model gives this token 3"},
    {ADDED("\"ab\"", "3"), "the id is 3, but the model gives this token 2"},
    {ADDED("\"c\",\"lstrip\":2", "3"), "lstrip: is not true or false"},
    // chains
    {WITH("\"normalizer\":{\"type\":\"Precompiled\"}"), "normalizer: the type \"Prec"},
    {WITH("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"X\"}]}"),
     "normalizer.normalizers[0]: the type \"X\""},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\"}"), "neither"},
    {WITH("\"normalizer\":{\"type\":\"Prepend\"}"), "prepend: is missing"},
    {WITH("\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}"), "UnicodeScripts"},
    {WITH("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}"),
     "replacement: is not one character"},
    {WITH("\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Odd\"}"), "Odd"},
    {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"),
     "0 times"},
    {WITH("\"decoder\":{\"type\":\"CTC\"}"), "decoder: the type \"CTC\""},
    {WITH("\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":-1}"), "-1 is"},
    // expressions
    {SPLIT("{\"String\":\"\"}"), "an empty text"},
    {SPLIT("{\"Regex\":\"(\"}"), "not a regular expression"},
    {SPLIT("{\"Regex\":\"\\\\w\"}"), "a backslash sequence"},
    {SPLIT("{\"Regex\":\"[a[b]]\"}"), "a class within a class"},
    {SPLIT("{\"Regex\":\"^a\"}"), "an anchor"},
    {SPLIT("{\"Regex\":\"(?s:a)\"}"), "a group's option"},
    {SPLIT("{\"Regex\":\"(?im:a)\"}"), "a group's option"},
    {SPLIT("{\"Regex\":\"(?i)a(?i:b)\"}"), NULL},
    {SPLIT("{\"Regex\":\"(*UTF)a\"}"), "a verb"},
    {SPLIT("{}"), "neither"},
};

static void test_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_tokenizer *tokenizer = NULL;
        tr_error err = {0};
        tr_status status = tr__tokenizer_parse("file", cases[i].file,
                                               strlen(cases[i].file), &tokenizer, &err);
        if (!cases[i].words && status != TR_OK) {
            fail_msg("%s: %s", cases[i].file, err.message);
        }
        if (cases[i].words &&
            (status != TR_DATA || tokenizer || !strstr(err.message, cases[i].words))) {
            fail_msg("%s: wanted \"%s\", got \"%s\"", cases[i].file, cases[i].words,
                     err.message);
        }
        tr_tokenizer_destroy(tokenizer);
    }
}

static void test_deep(void **state) {
    (void)state;
    char file[4096] = "{\"normalizer\":";
    tr_tokenizer *tokenizer = NULL;
    tr_error err = {0};
    for (int i = 0; i < 20; i++) {
        strcat(file, "{\"type\":\"Sequence\",\"normalizers\":[");
    }
    for (int i = 0; i < 20; i++) {
        strcat(file, "]}");
    }
    strcat(file, "}");
    assert_int_equal(tr__tokenizer_parse("file", file, strlen(file), &tokenizer, &err),
                     TR_DATA);
    assert_non_null(strstr(err.message, "Sequences in each other"));
}

// An expression that takes exponential time ends with an error.
static void test_expression(void **state) {
    (void)state;
    const char *file = SPLIT("{\"Regex\":\"(a|a|aa)+[cd]\"}");
    tr_tokenizer *tokenizer = NULL;
    tr_token_ids ids = {0};
    tr_error err = {0};
    tr_status status =
        tr__tokenizer_parse("file", file, strlen(file), &tokenizer, &err);
    assert_int_equal(status, TR_OK);
    char text[200];
    memset(text, 'a', sizeof text);
    status = tr_tokenizer_encode(tokenizer, text, sizeof text, NULL, 1, &ids, &err);
    assert_int_equal(status, TR_DATA);
    assert_non_null(strstr(err.message, "regular expression"));
    tr_token_ids_release(&ids);
    tr_tokenizer_destroy(tokenizer);
}

// Rules that each multiply a text end with an error that names the one that is too
// much.
#define THOUSAND_A                                                                     \
    HUNDRED_A HUNDRED_A HUNDRED_A HUNDRED_A HUNDRED_A HUNDRED_A HUNDRED_A HUNDRED_A    \
        HUNDRED_A HUNDRED_A
#define HUNDRED_A TEN_A TEN_A TEN_A TEN_A TEN_A TEN_A TEN_A TEN_A TEN_A TEN_A
#define TEN_A     "aaaaaaaaaa"
#define REPLACE                                                                        \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"" THOUSAND_A   \
    "\"}"
#define REPLACE_REGEX                                                                  \
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"" THOUSAND_A    \
    "\"}"
#define THREE(part) part "," part "," part
#define SEQUENCE(what, list, parts)                                                    \
    WITH("\"" what "\":{\"type\":\"Sequence\",\"" list "\":[" parts "]}")
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define NINE(part)                                                                     \
    part "," part "," part "," part "," part "," part "," part "," part "," part
#define PREPEND "{\"type\":\"Prepend\",\"prepend\":\"" THOUSAND_A "\"}"

static tr_tokenizer *parse(const char *file) {
    tr_tokenizer *tokenizer = NULL;
    tr_error err = {0};
    if (tr__tokenizer_parse("file", file, strlen(file), &tokenizer, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return tokenizer;
}

static void test_growth(void **state) {
    (void)state;
    static const struct {
        const char *file, *words;
    } grows[] = {
        {SEQUENCE("normalizer", "normalizers", THREE(REPLACE)),
         "normalizer 2 of 3 (Replace) makes more than 65728 bytes of a text of 3"},
        {SEQUENCE("normalizer", "normalizers", THREE(REPLACE_REGEX)),
         "normalizer 2 of 3 (Replace)"},
        {SEQUENCE("normalizer", "normalizers", NINE(NINE(PREPEND))),
         "normalizer 66 of 81 (Prepend)"},
        {SEQUENCE("pre_tokenizer", "pretokenizers", NINE(THREE(BYTES))),
         "pre-tokenizer 16 of 26 (ByteLevel)"},
    };
    for (size_t i = 0; i < sizeof grows / sizeof *grows; i++) {
        tr_tokenizer *tokenizer = parse(grows[i].file);
        tr_token_ids ids = {0};
        tr_error err = {0};
        tr_status status = tr_tokenizer_encode(tokenizer, i < 3 ? "aaa" : "\xc3\xa9",
                                               i < 3 ? 3 : 2, NULL, 1, &ids, &err);
        if (status != TR_DATA || !strstr(err.message, grows[i].words)) {
            fail_msg("wanted \"%s\", got %d, \"%s\"", grows[i].words, (int)status,
                     err.message);
        }
        tr_token_ids_release(&ids);
        tr_tokenizer_destroy(tokenizer);
    }
}

static void test_growth_of_decoders(void **state) {
    (void)state;
    tr_tokenizer *tokenizer = parse(SEQUENCE("decoder", "decoders", THREE(REPLACE)));
    const int32_t id[] = {0, 0, 0};
    char *text = NULL;
    size_t bytes;
    tr_error err = {0};
    assert_int_equal(tr_tokenizer_decode(tokenizer, id, 3, false, &text, &bytes, &err),
                     TR_DATA);
    assert_non_null(strstr(err.message, "decoder 2 of 3 (Replace) makes more than"));
    tr_tokenizer_destroy(tokenizer);
}

// What real tokenizers do is far below: three bytes for a blank, of a long text, too.
static void test_growth_allowed(void **state) {
    (void)state;
    tr_tokenizer *tokenizer = parse(
        WITH("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"b\"},"
             "\"content\":\"" TEN_A "\"}"));
    enum { BYTES_OF_TEXT = 1 << 18 };
    static char text[BYTES_OF_TEXT];
    tr_token_ids ids = {0};
    tr_error err = {0};
    memset(text, 'b', sizeof text);
    assert_int_equal(
        tr_tokenizer_encode(tokenizer, text, sizeof text, NULL, 1, &ids, &err), TR_OK);
    assert_int_equal(ids.count, 10 * BYTES_OF_TEXT);
    tr_token_ids_release(&ids);
    tr_tokenizer_destroy(tokenizer);
}

// Tokens that are sought in the normalized text are shown as it has them.
static void test_decode_normalized(void **state) {
    (void)state;
    static const struct {
        const char *normalizer, *flag, *shown;
    } shows[] = {
        {"{\"type\":\"Lowercase\"}", "true", "ab<y>ab"},
        {"{\"type\":\"Lowercase\"}", "false", "ab<Y>ab"},
        {"{\"type\":\"Prepend\",\"prepend\":\"_\"}", "true", "ab_<Y>ab"},
        {"{\"type\":\"Prepend\",\"prepend\":\"_\"}", "false", "ab<Y>ab"},
        {"null", "true", "ab<Y>ab"},
    };
    for (size_t i = 0; i < sizeof shows / sizeof *shows; i++) {
        char file[1000];
        snprintf(file, sizeof file,
                 WITH("\"normalizer\":%s,\"decoder\":{\"type\":\"Fuse\"},"
                      "\"added_tokens\":[{\"content\":\"<Y>\",\"id\":3,"
                      "\"normalized\":%s}]"),
                 shows[i].normalizer, shows[i].flag);
        tr_tokenizer *tokenizer = parse(file);
        const int32_t id[] = {2, 3, 2};
        char *text = NULL;
        size_t bytes;
        tr_error err = {0};
        assert_int_equal(
            tr_tokenizer_decode(tokenizer, id, 3, false, &text, &bytes, &err), TR_OK);
        assert_string_equal(text, shows[i].shown);
        tr_tokenizer_text_release(text);
        assert_int_equal(tr_tokenizer_find(tokenizer, "<Y>"), 3);
        tr_tokenizer_destroy(tokenizer);
    }
}

// A token that the normalizer makes long, a template of many tokens, a long chain.
static void test_too_many(void **state) {
    (void)state;
    static const struct {
        const char *begin, *part, *end, *words;
        int parts;
    } chains[] = {
        {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
         "{\"type\":\"Lowercase\"}", "]}," BPE "}", "a Sequence of more than 256 parts",
         257},
        {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":"
         "{\"a\":{\"ids\":[0]}},\"single\":[{\"Sequence\":{\"id\":\"A\"}},",
         "{\"SpecialToken\":{\"id\":\"a\"}}", "]}," BPE "}", "over 1024 tokens", 1025},
        {"{\"added_tokens\":[{\"content\":\"aaaaa\",\"id\":3,\"normalized\":true}],"
         "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
         REPLACE, "]}," BPE "}", "the normalizer makes 5000 bytes of it", 1},
    };
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        tr_text file = {0};
        tr_tokenizer *tokenizer = NULL;
        tr_error err = {0};
        tr__text_add(&file, chains[i].begin, strlen(chains[i].begin));
        for (int n = 0; n < chains[i].parts; n++) {
            tr__text_add(&file, ",", n > 0);
            tr__text_add(&file, chains[i].part, strlen(chains[i].part));
        }
        tr__text_add(&file, chains[i].end, strlen(chains[i].end));
        assert_int_equal(tr__tokenizer_parse("file", (const char *)file.bytes,
                                             file.count, &tokenizer, &err),
                         TR_DATA);
        if (!strstr(err.message, chains[i].words)) {
            fail_msg("wanted \"%s\", got \"%s\"", chains[i].words, err.message);
        }
        tr__text_release(&file);
    }
}

static void fill(tr_text *text, const char *what, size_t bytes) {
    tr__text_clear(text);
    while (text->count < bytes) {
        tr__text_add(text, what, strlen(what));
    }
    assert_false(text->failed);
}

// A million bytes of the same: in quadratic time none of them would come to an end.
static void test_long_runs(void **state) {
    (void)state;
    static const char *const runs[] = {
        "a",   " ", "\n", "\u0301",       "=",        "\u0301\u0316", "\u6f22",
        " \n", "7", "'",  "\u1100\u1161", "\xf0\x90", "<|end|",       "the"};
    tr_text text = {0};
    for (size_t i = 0; tokenizer_names[i]; i++) {
        tr_tokenizer *tokenizer = tokenizer_load(tokenizer_names[i]);
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            tr_token_ids ids = {0};
            tr_error err = {0};
            fill(&text, runs[r], 300000);
            if (tr_tokenizer_encode(tokenizer, (const char *)text.bytes, text.count,
                                    NULL, 1, &ids, &err) != TR_OK) {
                fail_msg("%s, \"%s\": %s", tokenizer_names[i], runs[r], err.message);
            }
            tr_token_ids_release(&ids);
        }
        tr_tokenizer_destroy(tokenizer);
    }
    tr__text_release(&text);
}

// Ids that no token has are passed over.
static void test_strange_ids(void **state) {
    (void)state;
    const int32_t id[] = {-1, INT32_MAX, INT32_MIN, 1 << 24, 499};
    for (size_t i = 0; tokenizer_names[i]; i++) {
        tr_tokenizer *tokenizer = tokenizer_load(tokenizer_names[i]);
        char *text = NULL;
        size_t bytes;
        tr_error err = {0};
        assert_int_equal(
            tr_tokenizer_decode(tokenizer, id, 4, false, &text, &bytes, &err), TR_OK);
        assert_string_equal(text, "");
        tr_tokenizer_text_release(text);
        assert_null(tr_tokenizer_token(tokenizer, -1, &bytes));
        assert_int_equal(tr_tokenizer_find(tokenizer, "no such token"), -1);
        tr_tokenizer_destroy(tokenizer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_expression),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_strange_ids),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_growth_of_decoders),
        cmocka_unit_test(test_growth_allowed),
        cmocka_unit_test(test_decode_normalized),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
