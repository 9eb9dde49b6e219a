// A program's own model on features: two units of it may have a mean over the effective
// batch in their middle, so two segments.
#ifndef TESTS_TRAIN_OWN_MODEL_H
#define TESTS_TRAIN_OWN_MODEL_H

#include <tranche/model.h>

#include <stdbool.h>

enum { OWN_UNITS = 4, OWN_DEEP_UNITS = 8, OWN_FEATURES = 6, OWN_CLASSES = 4 };

typedef struct own_middle {
    bool centered; // the batch's mean is taken out
    float dropout;
} own_middle;

// Points into itself: is not to be moved.
typedef struct own_model {
    own_middle config;
    tr_model_unit units[OWN_DEEP_UNITS];
    tr_model model;
} own_model;

void own_model_make(own_model *own, bool centered, float dropout);
// The same model without its loss: it has the logits as its output, and takes no
// labels.
void own_model_make_open(own_model *own, float dropout);
// That one with OWN_DEEP_UNITS units.
void own_model_make_open_deep(own_model *own);

#endif
