// GGUF, the files of llama.cpp and of programs that are made with it: writes a model or
// an adapter as one, and makes a Hugging Face folder of one.
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
    // Of matrices: "f32", "f16", "bf16", "q8_0"; NULL: the type that each is stored in.
    // Vectors are f32, and so are GPT-2's positions. Of q8_0, matrices are f16 whose
    // rows are no multiple of 32 numbers.
    const char *type;
    const char *base; // of an adapter, its base's folder; NULL: the one that it names
    // Where lines go about what the file cannot say; NULL: nowhere.
    const tr_sink *notes;
} tr_gguf_options;

#define TR_GGUF_OPTIONS_INIT                                                           \
    { sizeof(tr_gguf_options), NULL, NULL, NULL }

// Writes a model to `file`, with its tokenizer, its special tokens and its chat
// template. path: a folder or a checkpoint as tr_checkpoint_locate takes it. Of one
// with an adapter the file holds the adapter alone ("general.type" is "adapter"), which
// llama.cpp puts beside the base's own file. options: NULL: all defaults. What was at
// `file` is replaced once all is written. One piece of a tensor is in memory at a time;
// of GPT-2's matrices, one whole matrix.
// TR_USAGE: an unknown type, a model of another architecture, or one that does what
// GGUF cannot say. TR_DATA: of the tokenizer. TR_IO: a file is missing or damaged, or a
// value does not fit the type. TR_MEMORY.
TR_API tr_status tr_gguf_export(const char *path, const char *file,
                                const tr_gguf_options *options, tr_error *err);

// Makes a Hugging Face folder `out`, which must not be there yet or be empty, of a
// model in a GGUF file: config.json, model.safetensors, tokenizer.json,
// tokenizer_config.json, chat_template.jinja. Tensors in F32, F16 and BF16 keep their
// bits; those in Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K become f32.
// TR_IO: the file is damaged, or has something that is not supported; the message names
// it. TR_MEMORY.
TR_API tr_status tr_gguf_import(const char *file, const char *out, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
