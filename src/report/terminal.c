#include "report/terminal.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// First and last of the characters that are not shown: C0 and C1 controls, marks and
// overrides of the direction, joiners, separators of lines, tags.
static const uint32_t hidden[][2] = {
    {0x00, 0x1f},     {0x7f, 0x9f},      {0x61c, 0x61c},   {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x2069},  {0xd800, 0xdfff}, {0xfeff, 0xfeff},
    {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

static bool is_shown(uint32_t code, bool lines) {
    bool shown = code <= 0x10ffff;
    for (size_t i = 0; shown && i < sizeof hidden / sizeof *hidden; i++) {
        shown = code < hidden[i][0] || code > hidden[i][1];
    }
    return shown || (lines && (code == '\n' || code == '\t'));
}

// Bytes of the character that begins with `byte`; 0: none does.
static int length_of(unsigned char byte) {
    return byte < 0x80                   ? 1
           : byte >= 0xc2 && byte < 0xe0 ? 2
           : byte >= 0xe0 && byte < 0xf0 ? 3
           : byte >= 0xf0 && byte < 0xf5 ? 4
                                         : 0;
}

static uint32_t decode(const unsigned char *bytes, int length) {
    static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = bytes[0] & lead[length];
    for (int i = 1; i < length; i++) {
        code = code << 6 | (bytes[i] & 0x3f);
    }
    return code >= least[length] ? code : UINT32_MAX; // longer than it need be
}

static void put_whole(report_clean *text) {
    if (is_shown(decode(text->bytes, text->need), text->lines)) {
        fwrite(text->bytes, 1, (size_t)text->need, text->to);
    } else {
        fputc('?', text->to);
    }
    text->have = text->need = 0;
}

bool report_is_terminal(FILE *to) {
    return isatty(fileno(to)) != 0;
}

bool report_has_color(FILE *to) {
    const char *refused = getenv("NO_COLOR"), *term = getenv("TERM");
    return report_is_terminal(to) && !(refused && refused[0]) &&
           !(term && strcmp(term, "dumb") == 0);
}

report_clean report_clean_begin(FILE *to, bool lines) {
    return (report_clean){.to = to, .terminal = report_is_terminal(to), .lines = lines};
}

void report_clean_put(report_clean *text, unsigned char byte) {
    if (!text->terminal) {
        fputc(byte, text->to);
        return;
    }
    if (text->have > 0 && (byte & 0xc0) != 0x80) {
        report_clean_end(text);
    }
    if (text->have == 0) {
        text->need = length_of(byte);
        if (text->need == 0) {
            fputc('?', text->to);
            return;
        }
    }
    text->bytes[text->have++] = byte;
    if (text->have == text->need) {
        put_whole(text);
    }
}

void report_clean_end(report_clean *text) {
    if (text->have > 0) {
        fputc('?', text->to);
        text->have = text->need = 0;
    }
}

static void put_words(report_clean *text, const char *words) {
    for (; *words; words++) {
        report_clean_put(text, (unsigned char)*words);
    }
    report_clean_end(text);
}

static void print(FILE *to, const char *words, bool lines) {
    report_clean text = report_clean_begin(to, lines);
    put_words(&text, words);
}

static bool take(void *user, const char *bytes, size_t count) {
    report_clean *text = user;
    if (!text->terminal) {
        return fwrite(bytes, 1, count, text->to) == count;
    }
    for (size_t i = 0; i < count; i++) {
        report_clean_put(text, (unsigned char)bytes[i]);
    }
    return !ferror(text->to);
}

tr_sink report_sink(report_clean *text, FILE *to) {
    *text = report_clean_begin(to, true);
    return (tr_sink){take, text};
}

const char *report_word(const char *word, char *dst) {
    size_t length = strlen(word);
    bool cut = length > REPORT_WORD_MAX;
    length = cut ? REPORT_WORD_MAX : length;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)word[i];
        dst[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    snprintf(dst + length, 4, "%s", cut ? "..." : "");
    return dst;
}

void report_print_name(FILE *to, const char *name) {
    print(to, name, false);
}

void report_print_message(FILE *to, const char *message) {
    print(to, message, true);
}

void report_print_line(FILE *to, const char *begin, const char *message) {
    char *bytes = NULL;
    size_t length = 0;
    FILE *line = open_memstream(&bytes, &length);
    report_clean text = report_clean_begin(to, true);
    text.to = line ? line : to; // without memory: in pieces
    fputs(begin, text.to);
    put_words(&text, message);
    fputc('\n', text.to);
    if (line && fclose(line) == 0) {
        fwrite(bytes, 1, length, to);
    }
    free(bytes);
}

void report_print_colored_line(FILE *to, const char *color, const char *begin,
                               const char *message) {
    char colored[64];
    bool has = report_has_color(to);
    snprintf(colored, sizeof colored, "%s%s%s", has ? color : "", begin,
             has ? REPORT_PLAIN : "");
    report_print_line(to, colored, message);
}
