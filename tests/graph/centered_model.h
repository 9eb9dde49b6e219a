// A model whose units have batch barriers, a tied weight, a residual branch, cheap
// values and dropout: small, with everything in it that a plan must get right.
#ifndef TEST_GRAPH_CENTERED_MODEL_H
#define TEST_GRAPH_CENTERED_MODEL_H

#include <tranche/model.h>

enum { TEST_FEATURES = 5, TEST_CLASSES = 3 };

// Inputs [B, TEST_FEATURES] f32, targets [B] i32. Three units: the first and the second
// of two segments each.
extern const tr_model test_model_centered;

#endif
