// The tensors of a model as Hugging Face folders and GGUF files have them.
#ifndef TR_CONVERT_NAMES_H
#define TR_CONVERT_NAMES_H

#include <tranche/model.h>

enum { TR_GGUF_NAME_MAX = 128 };

// How the rows of a tensor in a GGUF file differ from those in a folder.
typedef enum tr_row_order {
    TR_ROWS_SAME,
    // Of each head, rotary embedding turns row i with row i + half in a folder, and
    // rows 2 i and 2 i + 1 in a file: file row 2 i + k is folder row i + k half.
    TR_ROWS_PAIRED,
    TR_ROWS_TURNED, // rows are columns of the folder's matrix
} tr_row_order;

// A tensor of both sides. The file has `rows` rows of `columns`; of a vector rows is 1.
typedef struct tr_name_pair {
    char ours[TR_GGUF_NAME_MAX];   // "model.layers.0.self_attn.q_proj.weight"
    char theirs[TR_GGUF_NAME_MAX]; // "blk.0.attn_q.weight"
    int rank;                      // 1 or 2
    int64_t rows, columns;
    tr_row_order order;
    int64_t head; // TR_ROWS_PAIRED: rows (of a vector: elements) of a head
    bool plain;   // it is stored as f32 in files
} tr_name_pair;

typedef struct tr_name_list {
    tr_name_pair *pair;
    size_t count, capacity;
} tr_name_list;

// The architecture of GGUF files that has models of this type; NULL: none has.
const char *tr__gguf_architecture(const char *type);
// All tensors of one of the library's models, whose type is one of those, in the order
// in which files have them. The caller releases the list. TR_MEMORY.
tr_status tr__names_of(const tr_model *model, tr_name_list *out, tr_error *err);
void tr__names_release(tr_name_list *list);

// The row of a folder's tensor, before it is turned, that is row `row` of the file's.
// A vector's elements are its rows here.
int64_t tr__names_row(const tr_name_pair *pair, int64_t row);

#endif
