// Small text work: nearest names, sizes, glob patterns.
#ifndef TR_BASE_TEXT_H
#define TR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Edits (insert, delete, change, swap neighbours) from a to b, capped at 255.
int tr__edit_distance(const char *a, const char *b);
// The nearest of `names` to `word`, NULL when none is near enough to be meant.
const char *tr__nearest(const char *word, const char *const *names, size_t count);

// "6GiB", "500MB", "1024", "2.3GiB" to bytes. false: not a size, negative, or over
// 2^62.
bool tr__parse_size(const char *text, int64_t *bytes);
// dst: [size], "2.31 GiB".
void tr__print_size(char *dst, size_t size, int64_t bytes);
// A length of time in words, "2h05", "3m20s" or "7s"; "?": nobody knows it.
void tr__print_time(char *dst, size_t size, double seconds);
// A name, filled up with blanks to `width` bytes (0: as it is). A line end or a tab in
// it becomes a '?', so that no name can be taken for a line of the text.
void tr__print_name(FILE *to, const char *name, int width);
// The shortest text that strtod reads as the same finite double. dst:
// [TR_DOUBLE_TEXT_MAX]; returns dst.
enum { TR_DOUBLE_TEXT_MAX = 32 };
const char *tr__print_double(char *dst, double value);
// `text` as it stands between the quotes of a JSON string.
void tr__print_escaped(const char *text, FILE *to);

// What a noun ends with after the count: "s", or "" after 1.
const char *tr__plural(int64_t count);

bool tr__ends_with(const char *text, const char *end);
// Does `name` match `pattern`, where '*' stands for any run and '?' for any character?
bool tr__glob_match(const char *pattern, const char *name);

#endif
