#include "files/checkpoint/state_numbers.h"

#include <string.h>

static int number_index(const tr_state_numbers *numbers, const char *name) {
    for (int i = 0; i < numbers->count; i++) {
        if (strcmp(numbers->item[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool tr__state_numbers_set(tr_state_numbers *numbers, const char *name, double value) {
    size_t length = strlen(name);
    int i = number_index(numbers, name);
    if (i < 0) {
        if (numbers->count == TR_STATE_NUMBERS_MAX || length == 0 ||
            length >= TR_STATE_NAME_MAX) {
            return false;
        }
        i = numbers->count++;
        memcpy(numbers->item[i].name, name, length + 1);
    }
    numbers->item[i].value = value;
    return true;
}

bool tr__state_numbers_get(const tr_state_numbers *numbers, const char *name,
                           double *value) {
    int i = number_index(numbers, name);
    if (i >= 0) {
        *value = numbers->item[i].value;
    }
    return i >= 0;
}
