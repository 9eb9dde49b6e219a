// The tensors of a safetensors file, or of a folder's files, open for reading.
#ifndef TR_FILES_SAFETENSORS_TENSOR_SET_H
#define TR_FILES_SAFETENSORS_TENSOR_SET_H

#include <tranche/checkpoint.h>
#include <tranche/extend/op.h>

#include <jansson.h>

typedef struct tr_tensor_set tr_tensor_set;

// Which tensors of a checkpoint's folder. Either are in one file or in shards with an
// index.
typedef enum tr_tensor_files {
    TR_FILES_MODEL,
    TR_FILES_OPTIMIZER,
    TR_FILES_ADAPTER // of a folder that has an adapter in place of a model
} tr_tensor_files;

const char *tr__files_stem(tr_tensor_files files);  // "model"
const char *tr__files_name(tr_tensor_files files);  // "model.safetensors"
const char *tr__files_index(tr_tensor_files files); // "model.safetensors.index.json"

// `path`: a safetensors file, or a folder with model.safetensors or with
// model.safetensors.index.json and the files it names. Reads and checks the headers, no
// data. TR_IO names file, tensor and problem. Closed by tr__tensor_set_close
// (NULL-safe).
// Of a folder with an adapter (TR_FILES_ADAPTER): the tensors of its base (adapter.h),
// and in their place, or beside them, those of the adapter.
tr_status tr__tensor_set_open(const char *path, tr_tensor_set **out, tr_error *err);
// The same of the tensors of one kind that `folder` has.
tr_status tr__tensor_set_open_files(const char *folder, tr_tensor_files files,
                                    tr_tensor_set **out, tr_error *err);
// Of a folder with an adapter, the base being in the folder `base`; NULL: where the
// adapter says. Of any other folder as tr__tensor_set_open.
tr_status tr__tensor_set_open_over(const char *base, const char *folder,
                                   tr_tensor_set **out, tr_error *err);
void tr__tensor_set_close(tr_tensor_set *set);

size_t tr__tensor_set_count(const tr_tensor_set *set);
// The i-th by name (byte order). Owned by the set, as are those below.
const tr_stored_tensor *tr__tensor_set_at(const tr_tensor_set *set, size_t i);
// NULL when there is none of that name.
const tr_stored_tensor *tr__tensor_set_find(const tr_tensor_set *set, const char *name);
// The same, but where `name` itself is missing, with or without a leading
// "transformer.", "model.", "bert." or "roberta.": files of a bare GPT2Model,
// LlamaModel, BertModel or RobertaModel leave it out.
const tr_stored_tensor *tr__tensor_set_find_prefixed(const tr_tensor_set *set,
                                                     const char *name);

size_t tr__tensor_set_files(const tr_tensor_set *set);
const char *tr__tensor_set_path(const tr_tensor_set *set, int file);
int tr__tensor_set_descriptor(const tr_tensor_set *set, int file); // open for reading
// Of the first file; an object of strings, or NULL. Borrowed.
const json_t *tr__tensor_set_metadata(const tr_tensor_set *set);

// Elements [first, first + count) of the set's `tensor`, as stored, straight into
// dst: [count] of its dtype.
tr_status tr__tensor_read(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                          int64_t first, int64_t count, void *dst, tr_error *err);
// The same as f32 (F32 goes straight to dst: [count]; F16, BF16 and F64 through a small
// piece on the stack). TR_IO: an integer tensor, or an F64 value beyond f32.
tr_status tr__tensor_read_f32(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                              int64_t first, int64_t count, float *dst, tr_error *err);

// Of a tensor that bitsandbytes has saved in 4 bits, with its parts, the set has one
// F32 tensor of its shape, and no parts. How it is stored; others: TR_QUANTIZED_NOT.
tr_quantization tr__tensor_quantization(const tr_tensor_set *set,
                                        const tr_stored_tensor *tensor);
// Bytes [first, first + count) of such a tensor as base/quantized.h lays it out.
tr_status tr__tensor_read_bits(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                               int64_t first, int64_t count, void *dst, tr_error *err);

// Does a folder hold weights that tr__tensor_set_open would find, an adapter's
// included?
bool tr__tensor_folder(const char *path);
// The same of the tensors of one kind.
bool tr__tensor_folder_has(const char *path, tr_tensor_files files);

#endif
