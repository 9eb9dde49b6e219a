// Text of others in markup: names, paths and messages may hold anything, and stay text.
#ifndef TR_REPORT_MARKUP_H
#define TR_REPORT_MARKUP_H

#include <stdint.h>
#include <stdio.h>

// As text, or in a quoted attribute, of HTML or XML. What is no UTF-8, and what XML
// does not know, becomes a '?'.
void markup_text(const char *text, FILE *to);
// As a JSON string, with its quotes, that may stand in a <script> of HTML: it has no
// '<'. What is no UTF-8 becomes a '?'.
void markup_json(const char *text, FILE *to);
// A number of JSON, with so many digits; null where it is not finite.
void markup_number(double value, int digits, FILE *to);
// "2.31 GiB"
enum { MARKUP_SIZE_TEXT = 32 };
const char *markup_size(int64_t bytes, char text[MARKUP_SIZE_TEXT]);

#endif
