// Matchers for the expressions of widespread models. Each walks the text once: where an
// expression looks ahead or goes back, the matcher knows how far.
#include "text/tokenizer/pattern.h"

#include <string.h>

const char tr__pattern_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
                                "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// The flags of the character at `at` and, in *next, where it ends.
static inline uint32_t look(const uint32_t *flags, const unsigned char *text, size_t at,
                            size_t *next) {
    size_t length = 1;
    uint32_t c = text[at];
    if (c >= 0x80) {
        c = tr__utf8_read(text + at, &length);
    }
    *next = at + length;
    return flags[c];
}

// The end of the run, from `at`, of characters that have one of these flags.
static inline size_t run(const uint32_t *flags, const unsigned char *text, size_t at,
                         size_t end, uint32_t any) {
    size_t next;
    while (at < end && look(flags, text, at, &next) & any) {
        at = next;
    }
    return at;
}

// The same of characters that have none of them.
static inline size_t run_without(const uint32_t *flags, const unsigned char *text,
                                 size_t at, size_t end, uint32_t none) {
    size_t next;
    while (at < end && !(look(flags, text, at, &next) & none)) {
        at = next;
    }
    return at;
}

static inline bool is_newline(unsigned char byte) {
    return byte == '\r' || byte == '\n';
}

static size_t run_newlines(const unsigned char *text, size_t at, size_t end) {
    while (at < end && is_newline(text[at])) {
        at++;
    }
    return at;
}

// \s+(?!\S)|\s+ : all blanks but the last one where something else follows.
static size_t blanks(const uint32_t *flags, const unsigned char *text, size_t at,
                     size_t end) {
    size_t stop = run(flags, text, at, end, TR_SPACE);
    if (stop == end || stop == at) {
        return stop;
    }
    size_t last = stop;
    do {
        last--;
    } while (tr__utf8_continues(text[last]));
    return last > at ? last : stop;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line end of the blanks, where there is one.
static size_t lines_or_blanks(const uint32_t *flags, const unsigned char *text,
                              size_t at, size_t end) {
    size_t stop = run(flags, text, at, end, TR_SPACE);
    for (size_t last = stop; last > at; last--) {
        if (is_newline(text[last - 1])) {
            return last;
        }
    }
    return blanks(flags, text, at, end);
}

// 's|'t|'re|'ve|'m|'ll|'d at an apostrophe; `fold` is 0x20 to take capitals as well.
// Returns `at` where there is none of them.
static size_t contraction(const unsigned char *text, size_t at, size_t end,
                          unsigned char fold) {
    if (end - at < 2) {
        return at;
    }
    unsigned char first = text[at + 1] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') {
        return at + 2;
    }
    // The long s is an s where case does not count.
    if (fold && end - at > 2 && text[at + 1] == 0xc5 && text[at + 2] == 0xbf) {
        return at + 3;
    }
    if (end - at < 3) {
        return at;
    }
    unsigned char second = text[at + 2] | fold;
    bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
               (first == 'l' && second == 'l');
    return two ? at + 3 : at;
}

static size_t match_gpt2(const uint32_t *flags, const unsigned char *text, size_t at,
                         size_t end) {
    size_t from = at, next;
    if (text[at] == '\'') {
        size_t stop = contraction(text, at, end, 0);
        if (stop > at) {
            return stop;
        }
    } else if (text[at] == ' ') {
        from++;
    }
    if (from < end) {
        uint32_t first = look(flags, text, from, &next);
        if (first & TR_LETTER) {
            return run(flags, text, next, end, TR_LETTER);
        }
        if (first & TR_NUMBER) {
            return run(flags, text, next, end, TR_NUMBER);
        }
        if (!(first & TR_SPACE)) {
            return run_without(flags, text, next, end,
                               TR_SPACE | TR_LETTER | TR_NUMBER);
        }
    }
    return blanks(flags, text, at, end);
}

// Up to `most` numbers.
static size_t numbers(const uint32_t *flags, const unsigned char *text, size_t at,
                      size_t end, int most) {
    size_t next;
    while (most-- > 0 && at < end && look(flags, text, at, &next) & TR_NUMBER) {
        at = next;
    }
    return at;
}

// Llama 3 (three digits) and Qwen 2 (one).
static inline size_t match_cl100k(const uint32_t *flags, const unsigned char *text,
                                  size_t at, size_t end, int digits) {
    size_t next, after;
    if (text[at] == '\'') {
        size_t stop = contraction(text, at, end, 0x20);
        if (stop > at) {
            return stop;
        }
    }
    uint32_t first = look(flags, text, at, &next);
    if (first & TR_LETTER) {
        return run(flags, text, next, end, TR_LETTER);
    }
    if (first & TR_NUMBER) {
        return numbers(flags, text, at, end, digits);
    }
    uint32_t second = next < end ? look(flags, text, next, &after) : 0;
    if (second & TR_LETTER && !is_newline(text[at])) {
        return run(flags, text, after, end, TR_LETTER);
    }
    size_t from = at;
    if (text[at] == ' ' && next < end) {
        from = next;
        first = second;
    }
    if (!(first & (TR_SPACE | TR_LETTER | TR_NUMBER))) {
        size_t stop =
            run_without(flags, text, from, end, TR_SPACE | TR_LETTER | TR_NUMBER);
        return run_newlines(text, stop, end);
    }
    return lines_or_blanks(flags, text, at, end);
}

static size_t match_llama3(const uint32_t *flags, const unsigned char *text, size_t at,
                           size_t end) {
    return match_cl100k(flags, text, at, end, 3);
}

static size_t match_qwen2(const uint32_t *flags, const unsigned char *text, size_t at,
                          size_t end) {
    return match_cl100k(flags, text, at, end, 1);
}

static bool is_ascii_letter(unsigned char byte) {
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static bool is_ascii_punctuation(unsigned char byte) {
    return byte > ' ' && byte < 0x7f && !is_ascii_letter(byte) &&
           !(byte >= '0' && byte <= '9');
}

static size_t match_deepseek(const uint32_t *flags, const unsigned char *text,
                             size_t at, size_t end) {
    size_t next, after;
    uint32_t first = look(flags, text, at, &next);
    if (is_ascii_punctuation(text[at]) && next < end && is_ascii_letter(text[next])) {
        while (next < end && is_ascii_letter(text[next])) {
            next++;
        }
        return next;
    }
    if (first & (TR_LETTER | TR_MARK)) {
        return run(flags, text, next, end, TR_LETTER | TR_MARK);
    }
    uint32_t second = next < end ? look(flags, text, next, &after) : 0;
    if (second & (TR_LETTER | TR_MARK) && !(first & (TR_PUNCTUATION | TR_SYMBOL)) &&
        !is_newline(text[at])) {
        return run(flags, text, after, end, TR_LETTER | TR_MARK);
    }
    size_t from = text[at] == ' ' ? next : at;
    if ((from == at ? first : second) & (TR_PUNCTUATION | TR_SYMBOL)) {
        size_t stop = run(flags, text, from, end, TR_PUNCTUATION | TR_SYMBOL);
        return run_newlines(text, stop, end);
    }
    return lines_or_blanks(flags, text, at, end);
}

// [一-龥぀-ゟ゠-ヿ]+
static size_t match_deepseek_cjk(const uint32_t *flags, const unsigned char *text,
                                 size_t at, size_t end) {
    (void)flags;
    while (at < end && text[at] >= 0xe3) {
        size_t length;
        uint32_t c = tr__utf8_read(text + at, &length);
        if (!(c >= 0x4e00 && c <= 0x9fa5) && !(c >= 0x3040 && c <= 0x30ff)) {
            break;
        }
        at += length;
    }
    return at;
}

static size_t match_number(const uint32_t *flags, const unsigned char *text, size_t at,
                           size_t end) {
    return numbers(flags, text, at, end, 1);
}

static size_t match_numbers3(const uint32_t *flags, const unsigned char *text,
                             size_t at, size_t end) {
    return numbers(flags, text, at, end, 3);
}

tr_matcher tr__pattern_known(const char *expression) {
    static const struct {
        const char *expression;
        tr_matcher matcher;
    } known[] = {
        {tr__pattern_gpt2, match_gpt2},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         match_llama3},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         match_qwen2},
        {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
         "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
         "\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
         match_deepseek},
        {"[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]"
         "+",
         match_deepseek_cjk},
        {"\\p{N}", match_number},
        {"\\p{N}{1,3}", match_numbers3},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(expression, known[i].expression) == 0) {
            return known[i].matcher;
        }
    }
    return NULL;
}
