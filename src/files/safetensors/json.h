// Small helpers around jansson that the files of this room share.
#ifndef TR_FILES_SAFETENSORS_JSON_H
#define TR_FILES_SAFETENSORS_JSON_H

#include <tranche/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Parses one JSON object; duplicate keys are refused. `path` is for the message. The
// caller releases `*out` with json_decref.
tr_status tr__json_parse(const char *path, const char *text, size_t bytes, json_t **out,
                         tr_error *err);

// A double that comes back to the bit: a number when finite (17 digits), else one of
// the strings "inf", "-inf", "nan".
json_t *tr__json_double(double value);
bool tr__json_get_double(const json_t *value, double *out);

// A 64-bit unsigned: an integer when it fits int64, else a decimal string.
json_t *tr__json_u64(uint64_t value);
bool tr__json_get_u64(const json_t *value, uint64_t *out);

// Hashes: 16 hexadecimal digits.
json_t *tr__json_hash(uint64_t hash);
bool tr__json_get_hash(const json_t *value, uint64_t *out);

// A path, whose bytes may be any: those that are no UTF-8 become U+FFFD. NULL: no
// memory.
json_t *tr__json_path(const char *path);

// The text of `root`, put into a buffer of its size: where jansson's own cannot grow,
// json_dumps leaves something out. Freed with tr__free; NULL: no memory.
char *tr__json_text(const json_t *root, size_t flags);

// Prints `root` (released here, NULL: no memory) and a newline.
tr_status tr__json_print(json_t *root, FILE *to, tr_error *err);

#endif
