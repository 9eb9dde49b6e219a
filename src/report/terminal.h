// Text of others on a terminal: names of files and tensors, what a model writes. A
// control character in it could move the cursor, rewrite what stands there, or turn
// around what follows, so each becomes a '?'. A pipe or a file gets the bytes.
#ifndef TR_REPORT_TERMINAL_H
#define TR_REPORT_TERMINAL_H

#include <tranche/types.h>

#include <stdbool.h>
#include <stdio.h>

// Is the stream a terminal?
bool report_is_terminal(FILE *to);
// May it have colors? Only a terminal may, where NO_COLOR (https://no-color.org) is not
// set or empty, and TERM is not "dumb".
bool report_has_color(FILE *to);
// UTF-8 that comes a byte at a time. Zero: at the beginning of a character.
typedef struct report_clean {
    FILE *to;
    bool terminal; // else the bytes go through as they are
    bool lines;    // line ends and tabs are let through
    unsigned char bytes[4];
    int have, need;
} report_clean;

report_clean report_clean_begin(FILE *to, bool lines);
void report_clean_put(report_clean *text, unsigned char byte);
void report_clean_end(report_clean *text); // what was not a whole character

// What the library prints, with its lines, on a stream. `text` is the state of what is
// returned, and must outlive it.
tr_sink report_sink(report_clean *text, FILE *to);

// A user's word in a message: control characters as '?', cut at REPORT_WORD_MAX.
// Returns dst, [REPORT_WORD_MAX + 4].
enum { REPORT_WORD_MAX = 120 };
const char *report_word(const char *word, char *dst);

// A name, without lines in it.
void report_print_name(FILE *to, const char *name);
// A message: line ends and tabs are let through.
void report_print_message(FILE *to, const char *message);
// `begin`, a message and a line end in one write, so that no other process that has the
// same stream, as ranks have, writes within the line.
void report_print_line(FILE *to, const char *begin, const char *message);

// A color of a terminal, to be put before words and REPORT_PLAIN behind them.
#define REPORT_RED    "\x1b[31m"
#define REPORT_GREEN  "\x1b[32m"
#define REPORT_YELLOW "\x1b[33m"
#define REPORT_PLAIN  "\x1b[0m"
// The same; `begin` has the color where the stream may have one (report_has_color).
void report_print_colored_line(FILE *to, const char *color, const char *begin,
                               const char *message);

#endif
