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

#endif
