// Runs of a small encoder on pairs of texts, with the contrastive loss.
#ifndef TESTS_TRAIN_PAIRS_H
#define TESTS_TRAIN_PAIRS_H

#include <stdint.h>

enum { PAIRS_TEXT_MAX = 2048 };

// So many pairs of drawn words, in that file.
void pairs_write(const char *path, int64_t count);

typedef struct pairs_setting {
    const char *records; // their file
    int batch, micro, passes;
    const char *more; // keys, each followed by a comma
} pairs_setting;

// The run's file.
void pairs_text(const pairs_setting *setting, char text[PAIRS_TEXT_MAX]);

#endif
