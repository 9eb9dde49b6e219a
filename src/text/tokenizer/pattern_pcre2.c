// Any other expression, by PCRE2. Files of tokenizers are written for Oniguruma's Ruby
// syntax; what that reads otherwise than PCRE2 is refused.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/clock.h"
#include "text/tokenizer/pattern.h"

#include <pcre2.h>

#include <string.h>

// Steps that one search may take, fewer in short texts, of which there are many, and
// how deep it may remember, in KiB. Searches that fail late at every place take
// quadratic time altogether: a text has some seconds, and a microsecond for each byte.
enum {
    MATCH_LIMIT = 10000000,
    MATCH_LIMIT_SHORT = 100000, // and for each byte
    MATCH_LIMIT_BYTE = 100,
    HEAP_LIMIT = 1 << 20,
    SECONDS = 5
};

// Why an expression means another thing to PCRE2; NULL: it does not.
static const char *differs(const char *at, const char *end) {
    bool inside = false; // of brackets
    for (; at < end; at++) {
        if (*at == '\\') {
            at++;
            if (at < end && strchr("hHRXKGQEbBZzAwW", *at) &&
                (!inside || strchr("hHRwW", *at))) {
                return "a backslash sequence";
            }
        } else if (inside) {
            if (*at == '[' || (*at == '&' && end - at > 1 && at[1] == '&')) {
                return "a class within a class";
            }
            inside = *at != ']';
        } else if (*at == '[') {
            inside = true;
            at += end - at > 1 && at[1] == '^';
            at += end - at > 1 && at[1] == ']';
        } else if (*at == '(' && end - at > 1 && at[1] == '*') {
            return "a verb";
        } else if (*at == '(' && end - at > 3 && at[1] == '?' &&
                   !strchr(":=!<>", at[2]) &&
                   !(at[2] == 'i' && (at[3] == ':' || at[3] == ')'))) {
            return "a group's option";
        } else if ((*at == '^' || *at == '$')) {
            return "an anchor";
        }
    }
    return NULL;
}

tr_status tr__regex_compile(const tr_node *node, const char *expression, size_t bytes,
                            void **code, tr_error *err) {
    int number;
    PCRE2_SIZE at;
    const char *why = differs(expression, expression + bytes);
    if (why) {
        return tr__node_fail(node, err, "the expression is not supported: it has %s",
                             why);
    }
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) {
        return tr_fail(err, TR_MEMORY, "no memory for a regular expression");
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 100);
    pcre2_code *compiled = pcre2_compile(
        (PCRE2_SPTR)expression, bytes, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
        &number, &at, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        PCRE2_UCHAR words[200] = "";
        pcre2_get_error_message(number, words, sizeof words);
        return tr__node_fail(node, err,
                             "not a regular expression: %s (at character %zu)",
                             (const char *)words, (size_t)at);
    }
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); // without it: slower
    *code = compiled;
    return TR_OK;
}

void tr__regex_release(void *code) {
    pcre2_code_free(code);
}

// What one search needs. NULL where there is no memory.
typedef struct search {
    pcre2_match_context *context;
    pcre2_match_data *data;
} search;

static bool search_begin(search *s, const pcre2_code *code, size_t bytes) {
    s->context = pcre2_match_context_create(NULL);
    s->data = pcre2_match_data_create_from_pattern(code, NULL);
    if (s->context) {
        size_t most = MATCH_LIMIT_SHORT + (bytes < MATCH_LIMIT ? bytes : MATCH_LIMIT) *
                                              (size_t)MATCH_LIMIT_BYTE;
        pcre2_set_match_limit(s->context,
                              most < MATCH_LIMIT ? (uint32_t)most : MATCH_LIMIT);
        pcre2_set_heap_limit(s->context, HEAP_LIMIT);
    }
    return s->context && s->data;
}

static void search_end(search *s) {
    pcre2_match_context_free(s->context);
    pcre2_match_data_free(s->data);
}

static tr_status too_hard(int result, tr_error *err) {
    PCRE2_UCHAR words[200] = "";
    pcre2_get_error_message(result, words, sizeof words);
    return tr_fail(err, TR_DATA,
                   "the tokenizer's regular expression cannot be matched to this text: "
                   "%s",
                   (const char *)words);
}

tr_status tr__regex_cut(const void *code, const unsigned char *text,
                        tr_text_span within, tr_text_spans *spans, tr_text *kinds,
                        tr_error *err) {
    search s;
    tr_status status = TR_OK;
    size_t bytes = within.end - within.begin, from = 0, at = 0;
    if (!search_begin(&s, code, bytes)) {
        search_end(&s);
        return tr_fail(err, TR_MEMORY, "no memory for a search");
    }
    double until = tr__seconds() + SECONDS + 1e-6 * (double)bytes;
    while (at < bytes) {
        int result = pcre2_match(code, text + within.begin, bytes, at,
                                 PCRE2_NO_UTF_CHECK, s.data, s.context);
        if (result == PCRE2_ERROR_NOMATCH) {
            break;
        }
        if (result < 0 || tr__seconds() > until) {
            status = too_hard(result < 0 ? result : PCRE2_ERROR_MATCHLIMIT, err);
            break;
        }
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(s.data);
        if (found[1] <= found[0]) { // empty: go on behind the next character
            at = found[0] < bytes
                     ? found[0] + tr__utf8_length(text[within.begin + found[0]])
                     : bytes;
            continue;
        }
        tr__cut_add(spans, kinds, within.begin + from, within.begin + found[0], false);
        tr__cut_add(spans, kinds, within.begin + found[0], within.begin + found[1],
                    true);
        from = at = found[1];
    }
    tr__cut_add(spans, kinds, within.begin + from, within.end, false);
    search_end(&s);
    return status;
}
