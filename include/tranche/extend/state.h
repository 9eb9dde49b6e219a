// What an optimizer keeps beside each trained parameter: its states, as rows.
#ifndef TRANCHE_EXTEND_STATE_H
#define TRANCHE_EXTEND_STATE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// How the values of a state are stored. An update reads and writes f32, whatever the
// type here. In 8 bits, each 256 elements of a tensor share an f32 scale. A code stands
// for one of 256 values between -1 and 1, or between 0 and 1 for states that are never
// negative (Dettmers et al., arXiv 2110.02861).
typedef enum tr_state_type {
    TR_STATE_F32,
    TR_STATE_BF16,
    TR_STATE_I8,
    TR_STATE_U8, // of what is never negative
    TR_STATE_TYPES
} tr_state_type;

// One state of an optimizer.
typedef struct tr_optimizer_state {
    const char *name; // in checkpoints, "exp_avg"; NULL: it is not saved
    tr_state_type type;
    bool positive; // never negative: of 8 bits it is a TR_STATE_U8
} tr_optimizer_state;

enum { TR_STATE_ROWS = 4 }; // at most, of one optimizer

// Which trained parameters are kept apart from the others, in flat buffers of their
// own, because an optimizer keeps other states of them.
typedef enum tr_apart {
    TR_APART_NOTHING,
    TR_APART_SMALL,     // of fewer than 4,096 elements; and the tables of embeddings
    TR_APART_NO_MATRIX, // of other than two dimensions; tables, and the output layer
} tr_apart;

// Decides whether some parameters are kept apart, if their tensor permits that. The
// first rule with a pattern (* and ?) that matches the parameter's name in files
// counts.
typedef struct tr_apart_rule {
    const char *const *patterns; // [count]
    size_t count;
    bool says, apart; // says false: the kind of its tensor decides
} tr_apart_rule;

#ifdef __cplusplus
}
#endif
#endif
