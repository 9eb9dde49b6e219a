// A file that torch.save wrote: a zip archive with a pickle, which says what is in it,
// and with the bytes of tensors.
//
// A pickle is a program of Python's, which calls whatever it names. Here nothing is
// called: dicts, lists, texts, numbers and tensors are what they are, and any other
// object is the name of its class and what it was made of.
#ifndef TR_FILES_TORCH_TORCH_H
#define TR_FILES_TORCH_TORCH_H

#include <tranche/checkpoint.h>

#include <stdbool.h>

typedef enum tr_torch_kind {
    TR_TORCH_NONE,
    TR_TORCH_BOOL,
    TR_TORCH_INTEGER,
    TR_TORCH_FLOAT,
    TR_TORCH_TEXT,
    TR_TORCH_LIST, // tuples, too
    TR_TORCH_DICT,
    TR_TORCH_TENSOR,
    TR_TORCH_STORAGE, // what tensors lie in
    TR_TORCH_CLASS,
    TR_TORCH_OBJECT,
    TR_TORCH_UNKNOWN // an integer of more than 64 bits
} tr_torch_kind;

typedef struct tr_torch_value tr_torch_value;
struct tr_torch_value {
    tr_torch_kind kind;
    int64_t integer; // BOOL, INTEGER
    double number;   // FLOAT
    char *text;      // TEXT; CLASS, OBJECT: "module.name"; STORAGE: its name
    // LIST; of DICT a key, its value, and so on; what OBJECT was made of.
    tr_torch_value **item;
    size_t count, capacity;
    // TENSOR: without a name, `file` unset; STORAGE: in one dimension. Its values can
    // be read unless `why` says why not.
    tr_stored_tensor tensor;
    const char *why;
};

typedef struct tr_torch_file tr_torch_file;

// Reads and checks all but the values of tensors; verify: also that these are what was
// written. TR_IO names the file and what is wrong. TR_MEMORY. Closed by
// tr__torch_close (NULL-safe).
tr_status tr__torch_open(const char *path, bool verify, tr_torch_file **out,
                         tr_error *err);
void tr__torch_close(tr_torch_file *file);

// What was saved. It may hold itself. Good until the file is closed.
const tr_torch_value *tr__torch_root(const tr_torch_file *file);

// The value of a text or of an integer in a dict; NULL: it is none, or has none.
const tr_torch_value *tr__torch_get(const tr_torch_value *dict, const char *key);
const tr_torch_value *tr__torch_get_at(const tr_torch_value *dict, int64_t key);
// NULL: it is no list, or shorter.
const tr_torch_value *tr__torch_at(const tr_torch_value *list, size_t i);
// NULL: it is none of this kind, or NULL itself.
const tr_torch_value *tr__torch_as(const tr_torch_value *value, tr_torch_kind kind);

#endif
