// Requests drawn at random from everything a plan may be asked for.
#ifndef TEST_PLAN_DRAWN_H
#define TEST_PLAN_DRAWN_H

#include "plan/flow/plan.h"

enum { TEST_DRAWN_MODELS = 14 };

typedef struct test_models {
    const tr_model *of[TEST_DRAWN_MODELS];
    tr_model *owned[TEST_DRAWN_MODELS];
} test_models;

void test_models_make(test_models *models);
void test_models_destroy(test_models *models);

// Request number `index`: always the same one. Not every one can be: tr_plan_make says
// TR_USAGE to those that cannot.
tr_plan_request test_draw_request(const test_models *models, uint64_t index);

#endif
