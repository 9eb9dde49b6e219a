// The documents of a tokenized text: each ends with the token that ends a text.
#ifndef TR_DATA_TEXT_TEXT_DOCUMENTS_H
#define TR_DATA_TEXT_TEXT_DOCUMENTS_H

#include "data/text/packed.h"
#include "data/text/windows.h"

// Of the ids that `options->made` names, where `eos` stands between documents. A
// document has its eos, the last one, too; one of a single token is none, since it has
// nothing to predict. On success tr__packed_open takes *out over. TR_IO; TR_MEMORY.
tr_status tr__text_documents(const tr_windows_options *options, int32_t eos,
                             tr_documents *out, tr_error *err);

#endif
