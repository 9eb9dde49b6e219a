// Machines and simulations to look at.
#ifndef TEST_SIM_HELPER_H
#define TEST_SIM_HELPER_H

#include "plan/models.h"
#include "sim/simulate.h"

// A machine on which each kernel takes one second and each message two, and nothing
// else any time; `more` (", \"link\": {...}") is put into its object, or "".
tr_machine *test_clockwork(const char *more);
#define TEST_LINK                                                                      \
    ", \"link\": {\"exchange\": \"nccl\", "                                            \
    "\"inside\": {\"bytes\": 1e30, \"latency\": 2}}"

// Fails the test when the text is no machine.
tr_machine *test_machine(const char *text);
// The same of a plan that is no training step.
tr_simulated *test_simulate(const tr_plan *plan, const tr_machine *machine);

// Fails the test when they are further apart than `most`.
void assert_near(double value, double wanted, double most);

#endif
