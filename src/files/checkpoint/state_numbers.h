// Numbers by name, in the order they were set. Doubles: integers up to 2^53 are exact.
#ifndef TR_FILES_CHECKPOINT_STATE_NUMBERS_H
#define TR_FILES_CHECKPOINT_STATE_NUMBERS_H

#include <stdbool.h>

enum { TR_STATE_NUMBERS_MAX = 64, TR_STATE_NAME_MAX = 32 };

typedef struct tr_state_numbers {
    int count;
    struct {
        char name[TR_STATE_NAME_MAX];
        double value;
    } item[TR_STATE_NUMBERS_MAX];
} tr_state_numbers;

// Sets or replaces. false: full, or a name that is empty or too long.
bool tr__state_numbers_set(tr_state_numbers *numbers, const char *name, double value);
bool tr__state_numbers_get(const tr_state_numbers *numbers, const char *name,
                           double *value);

#endif
