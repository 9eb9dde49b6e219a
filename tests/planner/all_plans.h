// Every plan that a request leaves open, made in full: what the planner must agree
// with.
#ifndef TEST_PLANNER_ALL_PLANS_H
#define TEST_PLANNER_ALL_PLANS_H

#include "planner/planner.h"

enum {
    TEST_PLANS_MAX = 8192,
    TEST_MESH = 1u << TR_DIMENSION_tensor_ranks | 1u << TR_DIMENSION_pipeline_stages |
                1u << TR_DIMENSION_pipeline_order | 1u << TR_DIMENSION_virtual_stages
};

typedef struct test_plans {
    tr_planner_option *all; // [count]
    size_t count;
} test_plans;

test_plans test_all_plans(const tr_planner_request *request);
void test_plans_free(test_plans *plans);
// The fastest within the limits; NULL: none is.
const tr_planner_option *test_fastest(const test_plans *plans, const tr_limits *limits);
// The least that a plan takes of the device, within the other limits.
int64_t test_smallest_device(const test_plans *plans, const tr_limits *limits);

// GPT-2 of four layers, 16 wide, 2 heads, context 8, 40 words. The caller destroys it.
tr_model *test_model_of_four(void);
// A machine that computes, copies and sends at rates of the same order.
tr_machine *test_slow_machine(void);
// What may be chosen of a batch of `batch` samples, but for the mesh; nothing is
// limited, nothing on NVMe.
tr_planner_request test_planner_request(const tr_model *model,
                                        const tr_machine *machine, int64_t batch,
                                        int64_t ranks);

#endif
