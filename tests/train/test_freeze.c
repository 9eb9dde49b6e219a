// Frozen parameters: what is trained takes the same bits as in a run that computes all
// gradients and gives the others a rate of 0; what is frozen keeps its bits, and has no
// gradients and no states.
#include "frozen.h"

#include <stdio.h>

static const char *const ways[] = {
    "\"execution\": {\"wave\": 1}",
    "\"execution\": {\"wave\": 2, \"recompute\": \"none\"}",
    "\"execution\": {\"recompute\": \"unit\"}",
    "\"activation_checkpointing\": {\"number_checkpoints\": 2, "
    "\"cpu_checkpointing\": true}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\", "
    "\"ratio\": 0.5}}",
    "\"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}, "
    "\"offload_param\": {\"device\": \"cpu\"}}",
#define NVME "\"memory\": {\"nvme\": {\"path\": \"/tmp\"}}"
    NVME ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}}",
    NVME ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}, "
         "\"offload_param\": {\"device\": \"nvme\"}}",
    NVME ", \"zero_optimization\": {\"offload_param\": {\"device\": \"nvme\"}}",
};
enum { WAYS = sizeof ways / sizeof *ways };

static const char *const precisions[] = {
    "", ", \"bf16\": {\"enabled\": true}",
    ", \"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": "
    "\"bf16\"}"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

// Each world in every way, in one precision after the other.
static void trained_part_is_as_at_rate_zero(void **state) {
    (void)state;
    for (int w = 0; w < FROZEN_WORLDS; w++) {
        for (int i = 0; i < WAYS; i++) {
            char keys[512];
            snprintf(keys, sizeof keys, "%s%s", ways[i],
                     precisions[(w + i) % PRECISIONS]);
            frozen_way way = {7, 2, keys, i % 2};
            frozen_compare(&frozen_worlds[w], &way, NULL);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_part_is_as_at_rate_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
