#include "convert/pre.h"

#include "text/tokenizer/pattern.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
// Expressions of Llama 3 and Qwen2 differ in how many digits are a word.
#define WORDS(digits)                                                                  \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits               \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
// Words that begin with capitals, or are all capitals. GPT-4o's have endings.
#define CAPITALS(ending, digits)                                                       \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"                      \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" ending                                            \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"                     \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" ending "|" digits                                 \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

// As llama.cpp has them: src/llama-vocab.cpp.
static const tr_pre all[] = {
    {LIST("gpt-2", "phi-2"), NULL, false, false, false},
    {LIST("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"),
     WORDS("\\p{N}{1,3}"), false, true, false},
    {LIST("dbrx", "smaug-bpe"), WORDS("\\p{N}{1,3}"), false, false, false},
    {LIST("qwen2"), WORDS("\\p{N}"), false, false, true},
    {LIST("deepseek-r1-qwen", "stablelm2", "megrez"), WORDS("\\p{N}"), false, false,
     false},
    {LIST("smollm", "starcoder", "refact", "command-r", "codeshell"), NULL, true, false,
     false},
    {LIST("tekken"), CAPITALS("", "\\p{N}"), false, true, false},
    {LIST("gpt-4o"), CAPITALS("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}"), false,
     false, false},
};
enum { COUNT = sizeof all / sizeof *all };

const tr_pre *tr__pre_named(const char *name) {
    for (int i = 0; i < COUNT; i++) {
        for (const char *const *one = all[i].names; *one; one++) {
            if (strcmp(*one, name) == 0) {
                return &all[i];
            }
        }
    }
    return NULL;
}

// What a pre-tokenizer does, in the terms of the table.
typedef struct meaning {
    const char *expression;
    bool digits, bytes, own; // own: ByteLevel cuts by its own expression
    bool unknown;
} meaning;

static bool is_type(const json_t *step, const char *type) {
    const char *text = json_string_value(json_object_get(step, "type"));
    return text && strcmp(text, type) == 0;
}

static bool is_text(const json_t *object, const char *key, const char *text) {
    const char *value = json_string_value(json_object_get(object, key));
    return value && strcmp(value, text) == 0;
}

static void add_step(const json_t *step, meaning *m) {
    const json_t *pattern = json_object_get(step, "pattern");
    const char *expression = json_string_value(json_object_get(pattern, "Regex"));
    m->unknown = m->unknown || m->bytes; // ByteLevel is the last
    if (is_type(step, "Digits")) {
        m->unknown = m->unknown || m->expression || m->digits ||
                     !json_is_true(json_object_get(step, "individual_digits"));
        m->digits = true;
    } else if (is_type(step, "Split")) {
        m->unknown = m->unknown || m->expression || !expression ||
                     !is_text(step, "behavior", "Isolated") ||
                     json_is_true(json_object_get(step, "invert"));
        m->expression = expression;
    } else if (is_type(step, "ByteLevel")) {
        m->bytes = true;
        m->own = !json_is_false(json_object_get(step, "use_regex"));
        m->unknown =
            m->unknown || !json_is_false(json_object_get(step, "add_prefix_space"));
    } else {
        m->unknown = true;
    }
}

static meaning meaning_of(const json_t *pre_tokenizer) {
    const json_t *steps = json_object_get(pre_tokenizer, "pretokenizers");
    meaning m = {0};
    if (!is_type(pre_tokenizer, "Sequence")) {
        add_step(pre_tokenizer, &m);
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        add_step(json_array_get(steps, i), &m);
    }
    if (m.expression && !m.own && strcmp(m.expression, tr__pattern_gpt2) == 0) {
        m.expression = NULL;
        m.own = true;
    }
    m.unknown = m.unknown || !m.bytes || m.own == (m.expression != NULL);
    return m;
}

const tr_pre *tr__pre_of(const json_t *pre_tokenizer, bool ignore_merges) {
    meaning m = meaning_of(pre_tokenizer);
    for (int i = 0; i < COUNT && !m.unknown; i++) {
        const char *expression = all[i].expression;
        bool same = expression && m.expression ? strcmp(expression, m.expression) == 0
                                               : !expression && !m.expression;
        if (same && all[i].digits == m.digits &&
            all[i].ignore_merges == ignore_merges) {
            return &all[i];
        }
    }
    return NULL;
}

json_t *tr__pre_json(const tr_pre *pre) {
    json_t *steps = json_array(), *root = NULL;
    bool good = steps != NULL;
    if (pre->digits) {
        good = good &&
               json_array_append_new(steps, json_pack("{s:s, s:b}", "type", "Digits",
                                                      "individual_digits", 1)) == 0;
    }
    if (pre->expression) {
        good = good && json_array_append_new(
                           steps, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split",
                                            "pattern", "Regex", pre->expression,
                                            "behavior", "Isolated", "invert", 0)) == 0;
    }
    good = good && json_array_append_new(
                       steps, json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
                                        "add_prefix_space", 0, "trim_offsets", 1,
                                        "use_regex", !pre->expression)) == 0;
    if (good && json_array_size(steps) == 1) {
        root = json_incref(json_array_get(steps, 0));
    } else if (good) {
        root = json_pack("{s:s, s:O}", "type", "Sequence", "pretokenizers", steps);
    }
    json_decref(steps);
    return root;
}
