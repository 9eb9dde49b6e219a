// GGUF, the file format of llama.cpp and of programs that use it. Writes a model or an
// adapter as a GGUF file, and makes a Hugging Face folder of such a file.
//
// Architectures: llama, mistral (which is llama there), qwen2, qwen3, gpt2. Tensors of
// these files are named, ordered and permuted as llama.cpp's own converter does it.
//
// No function here is collective.
#ifndef TRANCHE_GGUF_H
#define TRANCHE_GGUF_H

#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_gguf_options {
    size_t size; // of this struct
    // The type of matrices: "f32", "f16", "bf16", "q8_0"; NULL: the type that each is
    // stored in. Vectors are f32, and so are GPT-2's positions. With q8_0, matrices
    // whose rows are not a multiple of 32 numbers are f16.
    const char *type;
    // of an adapter: the folder of its base; NULL: the one that it names
    const char *base;
    // Gets lines about what the file cannot express; NULL: nobody does.
    const tr_sink *notes;
} tr_gguf_options;

#define TR_GGUF_OPTIONS_INIT                                                           \
    { sizeof(tr_gguf_options), NULL, NULL, NULL }

// Writes a model to `file`, with its tokenizer, its special tokens and its chat
// template. path: a folder or a checkpoint as tr_checkpoint_locate takes it. For a
// folder with an adapter, the file has the adapter alone ("general.type" is "adapter"),
// and llama.cpp uses it together with the base's own file. options: NULL: all defaults.
// An existing `file` is replaced when the new one is complete. One piece of a tensor is
// in memory at a time, or one whole matrix of GPT-2. TR_USAGE: an unknown type, a model
// of another architecture, or one with something that GGUF cannot express. TR_DATA: the
// tokenizer is wrong. TR_IO: a file is missing or damaged, or a value does not fit the
// type. TR_MEMORY.
TR_API tr_status tr_gguf_export(const char *path, const char *file,
                                const tr_gguf_options *options, tr_error *err);

// Makes a Hugging Face folder `out`, which must not exist or must be empty, of a model
// in a GGUF file: config.json, model.safetensors, tokenizer.json,
// tokenizer_config.json, chat_template.jinja. Tensors in F32, F16 and BF16 keep their
// bits; those in Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K become f32. TR_IO: the
// file is damaged, or has something that is not supported; the message names it.
// TR_MEMORY.
TR_API tr_status tr_gguf_import(const char *file, const char *out, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
