// What PyTorch makes of ten updates: a folder of tests/data/goldens.
#ifndef TESTS_TRAIN_GOLDEN_H
#define TESTS_TRAIN_GOLDEN_H

#include "snapshot.h"

#include <jansson.h>

// Makes its folder the current one.
void golden_go_to(const char *golden);
// What PyTorch ended with, states included, in the order of `like`.
void golden_read_final(const tr_optimizer *optimizer, const snapshot *like,
                       snapshot *final);
// A step beside its element of expected.json's "steps".
void golden_check_step(const char *golden, const tr_step_result *r,
                       const json_t *expected);

#endif
