// Text of others on a terminal: names of files and tensors, what a model writes. A
// control character in it could move the cursor, rewrite what stands there, or turn
// around what follows, so each becomes a '?'. A pipe or a file gets the bytes.
#ifndef TR_BASE_TERMINAL_H
#define TR_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

// UTF-8 that comes a byte at a time. Zero: at the beginning of a character.
typedef struct tr_clean_text {
    FILE *to;
    bool terminal; // else the bytes go through as they are
    bool lines;    // line ends and tabs are let through
    unsigned char bytes[4];
    int have, need;
} tr_clean_text;

tr_clean_text tr__clean_begin(FILE *to, bool lines);
void tr__clean_put(tr_clean_text *text, unsigned char byte);
void tr__clean_end(tr_clean_text *text); // what was not a whole character

// A name, filled up with blanks to `width` bytes (0: as it is).
void tr__print_name(FILE *to, const char *name, int width);
// A message: line ends and tabs are let through.
void tr__print_message(FILE *to, const char *message);
// `begin`, a message and a line end in one write, so that no other process that has the
// same stream, as ranks have, writes within the line.
void tr__print_line(FILE *to, const char *begin, const char *message);

#endif
