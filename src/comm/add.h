// Sums of a reduction, element by element; compiled with more optimization than the
// rest of the room.
#ifndef TR_COMM_ADD_H
#define TR_COMM_ADD_H

#include "comm/comm.h"

// Arrays of [count] f32 or i64 that do not overlap. Integers wrap.
void tr__add(tr_comm_type type, void *to, const void *from, int64_t count); // +=
void tr__add_to(tr_comm_type type, void *to, const void *own, const void *from,
                int64_t count); // to = own + from

#endif
