// Packed documents taken apart again: each a sample of its own. What a model makes of
// them must be the same, so a check compares the two.
#ifndef TR_DATA_TEXT_APART_H
#define TR_DATA_TEXT_APART_H

#include <tranche/data.h>

// The documents of the samples index[0 .. count) of a data set with positions, in their
// order, those without any target left out. The data are read now, and kept; `packed`
// is not needed any more. TR_USAGE: a tensor of it says something neither of each
// token nor of each document; TR_DATA: no document has a target; what reading them
// gives; TR_MEMORY.
tr_status tr__documents_apart(tr_dataset *packed, const int64_t *index, int64_t count,
                              tr_dataset **out, tr_error *err);

#endif
