// The schedule of a pipeline: every wave goes forward once and backward once behind
// that, in their order; and a stage keeps one wave more than stages follow it.
#include "plan/flow/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static tr_mesh stage_of(int64_t stage, int64_t stages) {
    return (tr_mesh){.size = {1, 1, stages}, .at = {0, 0, stage}};
}

// "F0 F1 B0 ..."
static void assert_turns(int64_t stage, int64_t stages, int64_t waves,
                         const char *expected) {
    char text[256];
    size_t used = 0;
    tr_mesh mesh = stage_of(stage, stages);
    for (int64_t i = 0; i < 2 * waves; i++) {
        tr_pipeline_turn turn = tr__turn_of(&mesh, waves, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%c%d",
                                 i > 0 ? " " : "", turn.backward ? 'B' : 'F',
                                 (int)turn.wave);
    }
    assert_string_equal(text, expected);
}

// As in figure 4 of arXiv 2104.04473.
static void forwards_run_ahead_of_backwards(void **state) {
    (void)state;
    assert_turns(0, 1, 2, "F0 B0 F1 B1");
    assert_turns(1, 2, 3, "F0 B0 F1 B1 F2 B2");
    assert_turns(0, 2, 3, "F0 F1 B0 F2 B1 B2");
    assert_turns(0, 4, 5, "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
    assert_turns(1, 4, 5, "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
    assert_turns(0, 4, 2, "F0 F1 B0 B1"); // fewer waves than stages
}

static void waves_under_way_are_bounded(void **state) {
    (void)state;
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t waves = 1; waves <= 12; waves++) {
            for (int64_t s = 0; s < stages; s++) {
                tr_mesh mesh = stage_of(s, stages);
                int64_t forward = 0, backward = 0, most = 0;
                for (int64_t i = 0; i < 2 * waves; i++) {
                    tr_pipeline_turn turn = tr__turn_of(&mesh, waves, i);
                    int64_t *done = turn.backward ? &backward : &forward;
                    assert_int_equal(turn.wave, (*done)++);
                    assert_true(backward <= forward);
                    most = forward - backward > most ? forward - backward : most;
                }
                assert_int_equal(forward, waves);
                assert_int_equal(backward, waves);
                assert_int_equal(most, tr__turns_under_way(&mesh, waves));
                assert_true(most <= stages - s);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwards_run_ahead_of_backwards),
        cmocka_unit_test(waves_under_way_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
