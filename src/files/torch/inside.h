// Inside of a file of torch.save.
#ifndef TR_FILES_TORCH_INSIDE_H
#define TR_FILES_TORCH_INSIDE_H

#include "files/torch/torch.h"
#include "files/torch/zip.h"

struct tr_torch_file {
    tr_zip zip;
    char *folder;           // in the archive, where all its entries are
    tr_torch_value **value; // [count] all that there are
    size_t count, capacity;
    const tr_torch_value *root;
};

// ---- values.c
// A value that the file owns. *out: zeros but for the kind. TR_MEMORY.
tr_status tr__torch_new(tr_torch_file *file, tr_torch_kind kind, tr_torch_value **out,
                        tr_error *err);
// The same of a text of so many bytes; one with a zero in it is UNKNOWN.
tr_status tr__torch_new_text(tr_torch_file *file, const void *text, size_t bytes,
                             tr_torch_value **out, tr_error *err);
tr_status tr__torch_append(tr_torch_value *to, tr_torch_value *item, tr_error *err);

// ---- make.c
// What a call of `class` gives, with the arguments in a list. TR_IO: a tensor whose
// bytes are not there.
tr_status tr__torch_make(tr_torch_file *file, tr_torch_value *class,
                         const tr_torch_value *arguments, tr_torch_value **out,
                         tr_error *err);
// What stands outside of the pickle, by what it says of it: a tensor's storage.
tr_status tr__torch_make_storage(tr_torch_file *file, const tr_torch_value *said,
                                 tr_torch_value **out, tr_error *err);

// ---- pickle.c
// Sets the root.
tr_status tr__torch_unpickle(tr_torch_file *file, const unsigned char *pickle,
                             size_t bytes, tr_error *err);

#endif
