// What exporting a model and exporting an adapter share.
#ifndef TR_CONVERT_EXPORT_H
#define TR_CONVERT_EXPORT_H

#include "base/log.h"
#include "convert/names.h"
#include "files/gguf/writer.h"
#include "files/safetensors/tensor_set.h"

typedef struct tr_export {
    const char *folder;           // of the model, or of the adapter
    const char *file;             // that is written
    const char *base;             // of an adapter; NULL: the one that it names
    const tr_gguf_format *format; // of matrices; NULL: as they are stored
    const tr_log *log;
    tr_model *model;          // of an adapter, its base's
    const char *architecture; // of files
    tr_name_list names;       // of the model
    tr_tensor_set *set;
    tr_gguf_writer *writer;
} tr_export;

// The model, what it is in files and its names, from its folder. TR_USAGE: it is none
// that GGUF has.
tr_status tr__export_model(tr_export *e, const char *folder, tr_error *err);
// general.*: type: "model", "adapter".
void tr__export_describe(tr_export *e, const char *type);
// The format of a matrix with rows of `columns` numbers that is stored as dtype.
const tr_gguf_format *tr__export_format(const tr_export *e, tr_dtype dtype,
                                        int64_t columns);
// The tensor's rows in the file's order, to the writer.
tr_status tr__export_rows(tr_export *e, const tr_name_pair *pair,
                          const tr_stored_tensor *tensor, tr_error *err);

// An adapter, whose folder is e->folder, from its first key to its end.
tr_status tr__export_adapter(tr_export *e, tr_error *err);

#endif
