// Pairs of spans for masked models that also learn what follows what (Devlin et al.,
// arXiv 1810.04805, section 3.1, task 2). A document is cut into windows, of as many
// tokens as a row has room for. A window is a sample, cut in two where a draw says: the
// first part is the first span. The second span is the other part; or, as often, as
// many tokens of another document. Draws depend on the seed, the epoch and the sample
// alone.
#ifndef TR_DATA_ENCODER_SPAN_PAIRS_H
#define TR_DATA_ENCODER_SPAN_PAIRS_H

#include "data/sources/joined.h"
#include "data/text/text_tokenizer.h"

// Of format jsonl, or text: options->masking.next_sentence. TR_DATA: fewer than two
// documents with tokens, rows that are too short; see tr__texts_open.
tr_status tr__span_pairs_open(const tr_data_options *options,
                              const tr_text_tokenizer *by, const tr_joined *files,
                              const char *key, uint64_t hash, tr_dataset **out,
                              tr_error *err);

#endif
