#include "sim/helper.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TEXT_MAX = 1024 };

tr_machine *test_machine(const char *text) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    if (tr__machine_parse("m.json", text, &machine, &err) != TR_OK) {
        fail_msg("no machine: %s", err.message);
    }
    return machine;
}

tr_machine *test_clockwork(const char *more) {
    char text[TEXT_MAX];
    int length = snprintf(text, sizeof text,
                          "{\"name\": \"clockwork\", \"ranks_per_node\": 4, "
                          "\"compute\": {\"flops\": 1e30, \"bytes\": 1e30, "
                          "\"launch\": 1}%s}",
                          more);
    assert_true(length > 0 && length < TEXT_MAX);
    return test_machine(text);
}

tr_simulated *test_simulate(const tr_plan *plan, const tr_machine *machine) {
    tr_simulated *simulated = NULL;
    tr_error err = {0};
    if (tr_simulate(plan, machine, &simulated, &err) != TR_OK) {
        fail_msg("no simulation: %s", err.message);
    }
    return simulated;
}

void assert_near(double value, double wanted, double most) {
    if (!(fabs(value - wanted) <= most)) {
        fail_msg("%.17g is not %.17g", value, wanted);
    }
}
