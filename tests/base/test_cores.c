// Who uses the cores, from what /proc/stat says.
#include "base/cores.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

// Cores 0, 1 and 3 are there; the second line is from before steal was told.
static const char stat[] = "cpu  900 9 9 9 9 9 9 9 0 0\n"
                           "cpu0 100 20 3 5000 70 4 5 6 0 0\n"
                           "cpu1 10 2 30 400\n"
                           "cpu3 1000 0 0 0 0 0 0 0 0 0\n"
                           "intr 1 2 3\n"
                           "cpu4 1 1 1 1 1 1 1 1 1 1\n";

static double ticks_of(const unsigned char *counted, int count, int *cores) {
    double ticks = -1;
    FILE *file = fmemopen((void *)stat, strlen(stat), "r");
    assert_non_null(file);
    *cores = tr__core_ticks(file, counted, count, &ticks);
    fclose(file);
    return ticks;
}

// Waiting (idle, iowait) is no work, and the line of all cores is none of a core.
static void work_of_the_counted_cores_is_read(void **state) {
    static const unsigned char all[] = {1, 1, 1, 1, 1}, last[] = {0, 0, 0, 1};
    int cores;
    (void)state;
    assert_true(ticks_of(all, 5, &cores) == 138 + 42 + 1000);
    assert_int_equal(cores, 3);
    assert_true(ticks_of(last, 4, &cores) == 1000);
    assert_int_equal(cores, 1);
    assert_true(ticks_of(all, 1, &cores) == 138);
    assert_int_equal(cores, 1);
}

static void others_are_what_is_not_own(void **state) {
    tr_core_times before = {.clock = 10, .busy = 100, .own = 5, .cores = 4};
    tr_core_times after = {.clock = 14, .busy = 114, .own = 13, .cores = 4};
    (void)state;
    assert_true(tr__cores_of_others(&before, &after) == 1.5);
    after.busy = 107; // clocks that do not quite agree
    assert_true(tr__cores_of_others(&before, &after) == 0);
    assert_true(tr__cores_of_others(&before, &before) == 0);
}

// A loop of this thread is work of its own, and of the cores.
static void own_work_counts(void **state) {
    tr_core_times before = tr__core_times(), after = before;
    (void)state;
    if (before.cores == 0) {
        skip(); // the system does not tell
    }
    while (after.own - before.own < 0.2 && after.clock - before.clock < 30) {
        after = tr__core_times();
    }
    assert_true(after.own - before.own >= 0.2);
    assert_true(after.busy - before.busy >= 0.1); // counted in hundredths
    assert_int_equal(after.cores, before.cores);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_the_counted_cores_is_read),
        cmocka_unit_test(others_are_what_is_not_own),
        cmocka_unit_test(own_work_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
