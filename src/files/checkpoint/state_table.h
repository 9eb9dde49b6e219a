// The numbers of a state.json: where they stand, of which kind they are, and between
// which bounds they lie. What is read is checked against this table before anybody
// computes with it.
#ifndef TR_FILES_CHECKPOINT_STATE_TABLE_H
#define TR_FILES_CHECKPOINT_STATE_TABLE_H

#include "files/checkpoint/state.h"

typedef enum tr_state_kind {
    TR_STATE_INTEGER,
    TR_STATE_UNSIGNED,
    TR_STATE_HASH,
    TR_STATE_REAL
} tr_state_kind;

enum { TR_STATE_BY_NAME = -1 };

typedef struct tr_state_row {
    const char *section; // NULL: at the top
    const char *name;
    tr_state_kind kind;
    double min, max; // of integers and reals, both included
    int offset;      // in tr_state, or TR_STATE_BY_NAME: one of `numbers`
} tr_state_row;

extern const tr_state_row tr__state_table[];
extern const size_t tr__state_rows;

// The row of a number by name; NULL: there is none.
const tr_state_row *tr__state_row_of(const char *name);

// TR_IO names file, key and bounds of the first number that is out of them. Numbers by
// name that the table does not know are passed over: nobody asks for them.
tr_status tr__state_check(const char *path, const tr_state *state, tr_error *err);

#endif
