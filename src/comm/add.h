// Sums of a reduction, element by element; compiled with more optimization than the
// rest of the room.
#ifndef TR_COMM_ADD_H
#define TR_COMM_ADD_H

#include "comm/comm.h"

// Arrays of [count] elements, of any type but bytes, that do not overlap. Integers
// wrap; 16-bit sums are made in f32, and that is rounded.
void tr__add(tr_comm_type type, void *to, const void *from, int64_t count); // +=
void tr__add_to(tr_comm_type type, void *to, const void *own, const void *from,
                int64_t count); // to = own + from

// The first to come is added to this rank's own part, which may be where the sum is to
// be; with `add`, also to what is there already.
void tr__add_first(tr_comm_type type, void *to, const void *own, const void *from,
                   bool add, int64_t count);

#endif
