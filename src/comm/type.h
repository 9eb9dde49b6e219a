// Types of the elements that ranks exchange.
#ifndef TR_COMM_TYPE_H
#define TR_COMM_TYPE_H

#include <stddef.h>

typedef enum tr_comm_type {
    TR_COMM_BYTE, // gathered only
    TR_COMM_F32,
    TR_COMM_I64,
    TR_COMM_BF16, // each addition is done in f32 and rounded to nearest, ties to even
    TR_COMM_F16,
} tr_comm_type;
size_t tr__comm_type_bytes(tr_comm_type type); // of an element

#endif
