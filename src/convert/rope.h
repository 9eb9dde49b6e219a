// Rotary embedding as GGUF files have it.
#ifndef TR_CONVERT_ROPE_H
#define TR_CONVERT_ROPE_H

#include "files/gguf/gguf.h"
#include "files/gguf/writer.h"

#include <tranche/extend/rope.h>

#include <jansson.h>

// The tensor beside files of llama with the scaling "llama3".
#define TR_GGUF_ROPE_TENSOR "rope_freqs.weight"

// Of each of head_dim / 2 frequencies what it is divided by. factors: [head_dim / 2].
void tr__rope_factors(const tr_rope_options *rope, int head_dim, float *factors);

// The metadata of a scaling. TR_USAGE: files cannot say it.
tr_status tr__rope_describe(tr_gguf_writer *writer, const char *architecture,
                            const tr_rope_options *rope, tr_error *err);
// The same back: rope_theta and rope_scaling into the keys of a config.json. TR_IO: the
// scaling is not supported, or the tensor of factors is none of "llama3"; TR_MEMORY.
tr_status tr__rope_config(const tr_gguf *gguf, const char *architecture, int head_dim,
                          json_t *keys, tr_error *err);

#endif
