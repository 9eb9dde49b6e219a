// The header of a safetensors file: 8 bytes of length (little-endian), a JSON object
// {"name": {"dtype", "shape", "data_offsets": [begin, end]}, …}, then the data, which
// the tensors cover without overlap or gap. Format:
// https://github.com/huggingface/safetensors#format
#ifndef TR_FILES_SAFETENSORS_HEADER_H
#define TR_FILES_SAFETENSORS_HEADER_H

#include <tranche/checkpoint.h>

#include <jansson.h>

enum {
    TR_HEADER_LENGTH_BYTES = 8,
    // About 130,000 tensors; a file of more is a folder of several.
    TR_HEADER_MAX = 16 << 20,
};

typedef struct tr_tensor_header {
    tr_stored_tensor *tensors; // by offset; names are owned
    size_t count;
    json_t *metadata; // object of strings, NULL when there is none
} tr_tensor_header;

// Reads a header's JSON and checks every rule of the format. `data_bytes`: of the file
// after the header. Offsets in `out` count from the data's start. `out` is set only on
// TR_OK and released with tr__header_release. TR_IO names file, tensor and problem.
tr_status tr__header_parse(const char *path, const char *text, size_t bytes,
                           int64_t data_bytes, tr_tensor_header *out, tr_error *err);
void tr__header_release(tr_tensor_header *header);

// A tensor to be written.
typedef struct tr_tensor_spec {
    const char *name;
    tr_dtype dtype;
    tr_shape shape;
} tr_tensor_spec;

// Lays out `count` tensors: wide elements first (so that each is aligned), then by
// name. offset: [count], of each tensor in the file, length included; order: [count],
// their indices in file order. `*text`: the file's bytes up to the data, padded with
// spaces to a multiple of 8, freed with tr__free. TR_INTERNAL: duplicate names, bad
// shapes.
tr_status tr__header_compose(const tr_tensor_spec *tensors, size_t count,
                             int64_t *offset, size_t *order, char **text,
                             size_t *text_bytes, int64_t *file_bytes, tr_error *err);

#endif
