// Writes JSON as it goes, without a tree: a plan has a hundred thousand steps. The
// writer sets commas and escapes texts; the caller opens and closes, and chooses where
// lines end.
#ifndef TR_BASE_JSON_WRITER_H
#define TR_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct tr_json_writer {
    FILE *to;
    bool comma; // the next key or value has one before it
    int indent; // what is written next begins a line, with so many spaces; -1: it does
                // not
} tr_json_writer;

tr_json_writer tr__json_writer(FILE *to);

// '{' or '[', and what closes it.
void tr__json_open(tr_json_writer *w, char bracket);
void tr__json_close(tr_json_writer *w, char bracket);
// What is written next begins a line.
void tr__json_line(tr_json_writer *w, int indent);

// Of an object; its value is written next.
void tr__json_key(tr_json_writer *w, const char *key);

void tr__json_add_text(tr_json_writer *w, const char *text);
void tr__json_add_integer(tr_json_writer *w, int64_t value);
void tr__json_add_bool(tr_json_writer *w, bool value);
void tr__json_add_null(tr_json_writer *w);
// Nine digits; and with three digits after the point. null where it is not finite.
void tr__json_add_real(tr_json_writer *w, double value);
void tr__json_add_fixed(tr_json_writer *w, double value);
// So many digits; and a whole number, which beyond 2^53 has an exponent, as readers
// take long integers for int64.
void tr__json_add_digits(tr_json_writer *w, double value, int digits);
void tr__json_add_whole(tr_json_writer *w, double value);

// A key and its value.
void tr__json_put_text(tr_json_writer *w, const char *key, const char *text);
void tr__json_put_integer(tr_json_writer *w, const char *key, int64_t value);
void tr__json_put_bool(tr_json_writer *w, const char *key, bool value);
void tr__json_put_real(tr_json_writer *w, const char *key, double value);
void tr__json_put_fixed(tr_json_writer *w, const char *key, double value);
void tr__json_put_digits(tr_json_writer *w, const char *key, double value, int digits);
void tr__json_put_whole(tr_json_writer *w, const char *key, double value);
void tr__json_put_open(tr_json_writer *w, const char *key, char bracket);

#endif
