// What lies beside a tokenizer.json in a Hugging Face folder.
#ifndef TR_TEXT_TOKENIZER_FOLDER_H
#define TR_TEXT_TOKENIZER_FOLDER_H

#include <tranche/data.h>

#include <limits.h>

// Where `path` is: itself where a file or folder has that name, else the model of that
// name on Hugging Face's hub in its local cache (base/hub.h). place: [PATH_MAX]. TR_IO:
// neither is there; the message says how to download what may be a model's name.
tr_status tr__tokenizer_locate(const char *path, char *place, tr_error *err);
// The tokenizer.json that `path` is, or that the folder or model `path` has.
// file: [PATH_MAX].
tr_status tr__tokenizer_file(const char *path, char *file, tr_error *err);
// The folder whose other files belong to the tokenizer: of a file called otherwise than
// tokenizer.json none do, and *folder is "". folder: [PATH_MAX].
tr_status tr__tokenizer_folder(const char *path, char *folder, tr_error *err);

// The token that ends a text: eos_token of tokenizer_config.json, else that of
// special_tokens_map.json, else eos_token_id of config.json, in the folder; -1: none
// says. TR_IO, TR_DATA: such a file cannot be read, or names what is no token.
tr_status tr__tokenizer_eos(const tr_tokenizer *tokenizer, const char *folder,
                            int32_t *id, tr_error *err);

// The token that stands in the place of a masked one, likewise, or what is usual:
// "[MASK]", "<mask>". -1: there is none.
tr_status tr__tokenizer_mask(const tr_tokenizer *tokenizer, const char *folder,
                             int32_t *id, tr_error *err);

#endif
