// JSON on standard output.
#ifndef TR_CLI_JSON_H
#define TR_CLI_JSON_H

#include <tranche/status.h>

#include <jansson.h>

// A number; null where it is not finite.
json_t *cli_json_number(double value);
// A text; null where it is NULL or empty.
json_t *cli_json_text(const char *text);
// A path, whose bytes may be any: those that are no UTF-8 become U+FFFD. NULL: no
// memory.
json_t *cli_json_path(const char *path);

// Prints an object on a line, with so many digits of its numbers (0: all 17), without a
// line end; releases it. NULL: there was no memory for it. TR_MEMORY. What cannot be
// written shows in ferror(stdout).
tr_status cli_json_line(json_t *object, size_t digits, tr_error *err);
// The same over several lines, and a line end.
tr_status cli_json_print(json_t *object, tr_error *err);

#endif
