// Samples for encoders: rows of whole texts, or of pairs, each with its special tokens
// and types (tr_batch_texts). They are held in memory, as ids.
#ifndef TR_DATA_ENCODER_TEXTS_H
#define TR_DATA_ENCODER_TEXTS_H

#include "data/sources/formats.h"

// Of format jsonl, or text: options->row_texts is not 0. The label of a text is its
// number in the data. TR_USAGE: another format, options that do not fit. TR_DATA: a
// record is no text, as FILE:LINE.
tr_format_open tr__texts_open;

#endif
