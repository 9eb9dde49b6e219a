// Values of a GGUF file's metadata by their keys, as configs want them.
#ifndef TR_CONVERT_VALUES_H
#define TR_CONVERT_VALUES_H

#include "files/gguf/gguf.h"
#include "files/gguf/writer.h"

#include <jansson.h>

// "llama.block_count" of "llama" and "block_count". dst: [TR_VALUE_KEY_MAX]; returns
// dst.
enum { TR_VALUE_KEY_MAX = 96 };
const char *tr__value_key(char *dst, const char *architecture, const char *name);

// Each writes a key of the architecture's.
void tr__value_put_u32(tr_gguf_writer *writer, const char *architecture,
                       const char *name, int64_t value);
void tr__value_put_float(tr_gguf_writer *writer, const char *architecture,
                         const char *name, double value);

// Each leaves *out as it is where the key is not there, and ends with TR_IO, which
// names the file and the key, where it is of another kind.
tr_status tr__value_integer(const tr_gguf *gguf, const char *key, int64_t *out,
                            tr_error *err);
tr_status tr__value_number(const tr_gguf *gguf, const char *key, double *out,
                           tr_error *err);
tr_status tr__value_bool(const tr_gguf *gguf, const char *key, bool *out,
                         tr_error *err);
// *out lives as long as the file is open.
tr_status tr__value_text(const tr_gguf *gguf, const char *key, const char **out,
                         tr_error *err);

// The double of the fewest digits that is `value` as a float: 1e-5, where its float is
// 9.99999975e-06.
double tr__value_shortest(float value);

#endif
