#include "base/terminal.h"

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

static void put_whole(tr_clean_text *text) {
    if (is_shown(decode(text->bytes, text->need), text->lines)) {
        fwrite(text->bytes, 1, (size_t)text->need, text->to);
    } else {
        fputc('?', text->to);
    }
    text->have = text->need = 0;
}

tr_clean_text tr__clean_begin(FILE *to, bool lines) {
    return (tr_clean_text){
        .to = to, .terminal = isatty(fileno(to)) != 0, .lines = lines};
}

void tr__clean_put(tr_clean_text *text, unsigned char byte) {
    if (!text->terminal) {
        fputc(byte, text->to);
        return;
    }
    if (text->have > 0 && (byte & 0xc0) != 0x80) {
        tr__clean_end(text);
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

void tr__clean_end(tr_clean_text *text) {
    if (text->have > 0) {
        fputc('?', text->to);
        text->have = text->need = 0;
    }
}

static void put_words(tr_clean_text *text, const char *words) {
    for (; *words; words++) {
        tr__clean_put(text, (unsigned char)*words);
    }
    tr__clean_end(text);
}

static void print(FILE *to, const char *words, bool lines) {
    tr_clean_text text = tr__clean_begin(to, lines);
    put_words(&text, words);
}

void tr__print_name(FILE *to, const char *name, int width) {
    size_t length = strlen(name);
    print(to, name, false);
    if (width > 0 && length < (size_t)width) {
        fprintf(to, "%*s", width - (int)length, "");
    }
}

void tr__print_message(FILE *to, const char *message) {
    print(to, message, true);
}

void tr__print_line(FILE *to, const char *begin, const char *message) {
    char *bytes = NULL;
    size_t length = 0;
    FILE *line = open_memstream(&bytes, &length);
    tr_clean_text text = tr__clean_begin(to, true);
    text.to = line ? line : to; // without memory: in pieces
    fputs(begin, text.to);
    put_words(&text, message);
    fputc('\n', text.to);
    if (line && fclose(line) == 0) {
        fwrite(bytes, 1, length, to);
    }
    free(bytes);
}
