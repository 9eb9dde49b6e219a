// Which texts are equal, by their tokens.
#ifndef TR_DATA_ENCODER_EQUAL_TEXTS_H
#define TR_DATA_ENCODER_EQUAL_TEXTS_H

#include "data/encoder/text_list.h"

// Gives each text a class: the number of the first one that has its tokens and types.
// *equal: texts that are equal to an earlier one. TR_MEMORY.
tr_status tr__equal_texts(tr_text_list *list, int64_t *equal, tr_error *err);

#endif
