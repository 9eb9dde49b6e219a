// What a step does with bytes of a value.
#ifndef TR_PLAN_UNITS_OPERAND_H
#define TR_PLAN_UNITS_OPERAND_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tr_access_mode {
    TR_ACCESS_READ,
    TR_ACCESS_WRITE, // what was there before does not count
    TR_ACCESS_ADD,   // reads, adds, and writes
} tr_access_mode;

// Bytes [first, end) of a buffer of the plan. Where they are none, this rank has no
// part of what is moved or computed: it waits as those ranks do that have one.
typedef struct tr_step_operand {
    int32_t buffer; // -1: absent
    tr_access_mode mode : 8;
    // An add that is a write where nobody has added to these bytes before (adds.c). Of
    // a program's block: some of what the program does to it.
    bool contributes : 1;
    int64_t first, end;
} tr_step_operand;

#endif
