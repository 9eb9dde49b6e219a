// A GGUF file open for reading: its metadata, and where its tensors are. Of versions 2
// and 3, little-endian.
#ifndef TR_FILES_GGUF_GGUF_H
#define TR_FILES_GGUF_GGUF_H

#include "files/gguf/format.h"

#include <tranche/status.h>

typedef struct tr_gguf tr_gguf;

// Of values, by their numbers in files.
typedef enum tr_gguf_kind {
    TR_GGUF_U8,
    TR_GGUF_I8,
    TR_GGUF_U16,
    TR_GGUF_I16,
    TR_GGUF_U32,
    TR_GGUF_I32,
    TR_GGUF_FLOAT,
    TR_GGUF_BOOL,
    TR_GGUF_TEXT,
    TR_GGUF_ARRAY,
    TR_GGUF_U64,
    TR_GGUF_I64,
    TR_GGUF_DOUBLE,
    TR_GGUF_KINDS
} tr_gguf_kind;

// Bytes of a number of this kind; 0: it is none.
size_t tr__gguf_kind_bytes(tr_gguf_kind kind);

// A value of the metadata. An array is of numbers or of texts.
typedef struct tr_gguf_value {
    char *key;
    tr_gguf_kind kind; // of an array: of its elements
    bool array;
    int64_t count;       // 1 where it is no array
    unsigned char *data; // numbers as in the file; of texts all bytes, a 0 after each
    size_t *begin;       // [count + 1] of texts in data; NULL: they are numbers
} tr_gguf_value;

// Dimensions are in the file's order: dim[0] varies fastest.
typedef struct tr_gguf_tensor {
    char *name;
    const tr_gguf_format *format;
    int rank;
    int64_t dim[TR_RANK_MAX]; // 1 from `rank` on
    int64_t count;            // elements
    int64_t bytes, offset;    // in the file
} tr_gguf_tensor;

// Reads and checks all but the tensors' data. TR_IO names the file, the key or tensor,
// and the problem. TR_MEMORY. Closed by tr__gguf_close (NULL-safe).
tr_status tr__gguf_open(const char *path, tr_gguf **out, tr_error *err);
void tr__gguf_close(tr_gguf *gguf);
// Does the file begin as a GGUF file does?
bool tr__gguf_is(const char *path);
// For who takes models in folders alone. TR_IO: the path is a GGUF file; the message
// says how to make a folder of it.
tr_status tr__gguf_refuse(const char *path, tr_error *err);

const char *tr__gguf_path(const tr_gguf *gguf);

size_t tr__gguf_value_count(const tr_gguf *gguf);
const tr_gguf_value *tr__gguf_value_at(const tr_gguf *gguf, size_t i);
// NULL: there is none of that key.
const tr_gguf_value *tr__gguf_find(const tr_gguf *gguf, const char *key);

// Text i of a value of texts, *bytes long, with a 0 behind it.
const char *tr__gguf_text(const tr_gguf_value *value, int64_t i, size_t *bytes);
// Number i of a value of numbers; false: it is a text, or no whole number in int64.
bool tr__gguf_integer(const tr_gguf_value *value, int64_t i, int64_t *out);
bool tr__gguf_number(const tr_gguf_value *value, int64_t i, double *out);

size_t tr__gguf_tensor_count(const tr_gguf *gguf);
// In the file's order.
const tr_gguf_tensor *tr__gguf_tensor_at(const tr_gguf *gguf, size_t i);
const tr_gguf_tensor *tr__gguf_find_tensor(const tr_gguf *gguf, const char *name);

// Elements [first, first + count) as f32, both in whole blocks. dst: [count].
tr_status tr__gguf_read(const tr_gguf *gguf, const tr_gguf_tensor *tensor,
                        int64_t first, int64_t count, float *dst, tr_error *err);
// The same as they are stored.
tr_status tr__gguf_read_stored(const tr_gguf *gguf, const tr_gguf_tensor *tensor,
                               int64_t first, int64_t count, void *dst, tr_error *err);

#endif
