// What a GGUF file says of a model beside its tensors and its tokenizer.
#ifndef TR_CONVERT_DESCRIBE_H
#define TR_CONVERT_DESCRIBE_H

#include "base/log.h"
#include "files/gguf/writer.h"

#include <tranche/model.h>

// The metadata of one of the library's models. architecture: of its files. TR_USAGE: it
// does what files cannot say.
tr_status tr__describe_model(tr_gguf_writer *writer, const tr_model *model,
                             const char *architecture, const tr_log *log,
                             tr_error *err);

#endif
