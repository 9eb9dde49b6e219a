// Writes a GGUF file of version 3: first all that is said of it, then its tensors,
// front to back.
#ifndef TR_FILES_GGUF_WRITER_H
#define TR_FILES_GGUF_WRITER_H

#include "files/gguf/gguf.h"

typedef struct tr_gguf_writer tr_gguf_writer;

// NULL: no memory. Destroyed with tr__gguf_writer_destroy (NULL-safe), which removes a
// file that was not finished.
tr_gguf_writer *tr__gguf_writer_create(void);
void tr__gguf_writer_destroy(tr_gguf_writer *writer);

// Metadata, in the order of the calls. Where there is no memory for one,
// tr__gguf_writer_open says so.
void tr__gguf_put_u32(tr_gguf_writer *writer, const char *key, uint32_t value);
void tr__gguf_put_float(tr_gguf_writer *writer, const char *key, float value);
void tr__gguf_put_bool(tr_gguf_writer *writer, const char *key, bool value);
void tr__gguf_put_text(tr_gguf_writer *writer, const char *key, const char *text,
                       size_t bytes);
// A list of `count` elements, which are then put one by one.
void tr__gguf_put_list(tr_gguf_writer *writer, const char *key, tr_gguf_kind kind,
                       size_t count);
void tr__gguf_add_text(tr_gguf_writer *writer, const char *text, size_t bytes);
void tr__gguf_add_i32(tr_gguf_writer *writer, int32_t value);
void tr__gguf_add_float(tr_gguf_writer *writer, float value);

// A tensor to be written; dim: as in the file, dim[0] varies fastest and is a multiple
// of the format's block. Its data follow in the order of these calls. TR_MEMORY.
tr_status tr__gguf_add_tensor(tr_gguf_writer *writer, const char *name,
                              const tr_gguf_format *format, int rank,
                              const int64_t *dim, tr_error *err);

// Makes `path`.partial at its full size, with all but the tensors' data. TR_IO names
// the path. TR_MEMORY.
tr_status tr__gguf_writer_open(tr_gguf_writer *writer, const char *path, tr_error *err);
// The next `count` elements of the tensors: whole blocks of one tensor. TR_IO: a value
// does not fit the tensor's format; or of the file.
tr_status tr__gguf_write(tr_gguf_writer *writer, const float *values, int64_t count,
                         tr_error *err);
// Syncs the file and gives it its name.
tr_status tr__gguf_writer_finish(tr_gguf_writer *writer, tr_error *err);

#endif
