// The schedules of a pipeline: each wave goes once through every chunk, forward and
// backward, no turn before what it waits for; and stages wait as long as the literature
// says.
#include "plan/schedules/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int64_t takes[TR_TURN_KINDS * 64];

typedef enum going {
    TRAINS,
    TRAINS_ONE_BY_ONE, // the loss of a wave is there before the next wave's data
    EVALUATES
} going;

static void make_of(going how, tr_pipeline_order order, int64_t stages, int64_t each,
                    int64_t waves, int64_t stage, tr_turns *out) {
    tr_error err;
    const tr_pipeline_schedule *schedule = tr__pipeline_schedule(order);
    int64_t chunks = stages * each;
    for (int64_t c = 0; c < chunks; c++) { // a whole backward takes twice as long
        takes[c] = takes[2 * chunks + c] = 1;
        takes[chunks + c] = schedule->weights_later ? 1 : 2;
    }
    const tr_pipeline_place at = {
        {.stages = stages, .each = each, .folds = schedule->folds},
        waves,
        stage,
        takes,
        how == TRAINS_ONE_BY_ONE};
    assert_int_equal((how == EVALUATES ? tr__pipeline_forwards
                                       : tr__pipeline_turns)(schedule, &at, out, &err),
                     TR_OK);
}

static void make(tr_pipeline_order order, int64_t stages, int64_t each, int64_t waves,
                 int64_t stage, tr_turns *out) {
    make_of(TRAINS, order, stages, each, waves, stage, out);
}

// "F0 F1 B0 ..."; of several chunks "F0.3": chunk 0, wave 3.
static void assert_turns_of(going how, tr_pipeline_order order, int64_t stage,
                            int64_t stages, int64_t each, int64_t waves,
                            const char *expected) {
    char text[512];
    size_t used = 0;
    tr_turns turns;
    make_of(how, order, stages, each, waves, stage, &turns);
    for (int64_t i = 0; i < turns.count; i++) {
        const tr_pipeline_turn *turn = &turns.turn[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%c",
                                 i > 0 ? " " : "", "FBW"[turn->kind]);
        if (each > 1) {
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%d.", turn->chunk);
        }
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%d", (int)turn->wave);
    }
    assert_string_equal(text, expected);
    tr__turns_clear(&turns);
}

static void assert_turns(tr_pipeline_order order, int64_t stage, int64_t stages,
                         int64_t each, int64_t waves, const char *expected) {
    assert_turns_of(TRAINS, order, stage, stages, each, waves, expected);
}

// As in figure 4 of arXiv 2104.04473.
static void forwards_run_ahead_of_backwards(void **state) {
    (void)state;
    const tr_pipeline_order order = TR_PIPELINE_1F1B;
    assert_turns(order, 0, 1, 1, 2, "F0 B0 F1 B1");
    assert_turns(order, 1, 2, 1, 3, "F0 B0 F1 B1 F2 B2");
    assert_turns(order, 0, 2, 1, 3, "F0 F1 B0 F2 B1 B2");
    assert_turns(order, 0, 4, 1, 5, "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
    assert_turns(order, 1, 4, 1, 5, "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
    assert_turns(order, 0, 4, 1, 2, "F0 F1 B0 B1"); // fewer waves than stages
}

static void chunks_go_round_the_stages(void **state) {
    (void)state;
    // As in the lower half of that figure: warm-up is 2 (p - 1 - s) + (v - 1) p.
    assert_turns(TR_PIPELINE_INTERLEAVED, 1, 2, 2, 2,
                 "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 B1.0 B1.1");
    assert_turns(TR_PIPELINE_INTERLEAVED, 0, 2, 2, 2,
                 "F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1");
    // The last group has one wave.
    assert_turns(TR_PIPELINE_INTERLEAVED, 1, 2, 2, 3,
                 "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F3.2 B1.1 B3.2 B1.2");
    assert_turns(TR_PIPELINE_BREADTH_FIRST, 1, 2, 2, 2,
                 "F1.0 F1.1 F3.0 F3.1 B3.0 B3.1 B1.0 B1.1");
}

// As in figure 3 of arXiv 2401.10241: a stage keeps two waves' activations, and what it
// puts off fills the gap behind its first forwards and the end.
static void gradients_of_weights_fill_gaps(void **state) {
    (void)state;
    assert_turns(TR_PIPELINE_ZERO_BUBBLE, 0, 2, 1, 3, "F0 F1 B0 W0 F2 B1 W1 B2 W2");
    assert_turns(TR_PIPELINE_ZERO_BUBBLE, 1, 2, 1, 3, "F0 B0 F1 B1 W0 F2 B2 W1 W2");
    assert_turns(TR_PIPELINE_V, 1, 2, 2, 1, "F1.0 F2.0 B2.0 B1.0 W1.0 W2.0");
}

// A stage is through with a wave's forwards before the next wave's begin. What comes
// back is in the schedule's order, and fills the gaps.
static void waves_go_forward_one_by_one(void **state) {
    (void)state;
    assert_turns_of(TRAINS_ONE_BY_ONE, TR_PIPELINE_INTERLEAVED, 0, 2, 2, 2,
                    "F0.0 F2.0 F0.1 F2.1 B2.0 B2.1 B0.0 B0.1");
    assert_turns_of(TRAINS_ONE_BY_ONE, TR_PIPELINE_INTERLEAVED, 1, 2, 2, 2,
                    "F1.0 F3.0 F1.1 B3.0 F3.1 B3.1 B1.0 B1.1");
    assert_turns_of(TRAINS_ONE_BY_ONE, TR_PIPELINE_BREADTH_FIRST, 1, 2, 2, 2,
                    "F1.0 F3.0 F1.1 F3.1 B3.0 B3.1 B1.0 B1.1");
    assert_turns_of(TRAINS_ONE_BY_ONE, TR_PIPELINE_1F1B, 0, 2, 1, 3,
                    "F0 F1 B0 F2 B1 B2");
}

// ---- of all sizes

static int64_t begin_of(const tr_turns *turns, tr_pipeline_turn turn) {
    int64_t begin = tr__pipeline_turn_begin(turns, turn);
    assert_true(begin >= 0);
    return begin;
}

// What a turn waits for has ended.
static void assert_follows(const tr_turns *turns, tr_pipeline_turn turn) {
    int last = tr__chunk_count(&turns->chunks) - 1;
    tr_pipeline_turn before = turn;
    if (turn.kind == TR_TURN_WEIGHTS) {
        before.kind = TR_TURN_BACKWARD;
    } else {
        before.chunk += turn.kind == TR_TURN_FORWARD ? -1 : 1;
    }
    if (before.chunk >= 0 && before.chunk <= last) {
        assert_true(tr__pipeline_turn_end(turns, before) <= begin_of(turns, turn));
    }
    if (turn.kind == TR_TURN_BACKWARD) {
        before = (tr_pipeline_turn){TR_TURN_FORWARD, turn.chunk, turn.wave};
        assert_true(tr__pipeline_turn_end(turns, before) <= begin_of(turns, turn));
    }
}

// The stage's turns are all there, one after the other. Returns when the last ends.
static int64_t assert_whole(const tr_turns *turns, int64_t kinds, int64_t stage) {
    int64_t chunks = tr__chunk_count(&turns->chunks), end = 0;
    char seen[TR_TURN_KINDS][64][64];
    memset(seen, 0, sizeof seen);
    assert_true(chunks <= 64 && turns->waves <= 64);
    assert_int_equal(turns->count, kinds * turns->chunks.each * turns->waves);
    for (int64_t i = 0; i < turns->count; i++) {
        tr_pipeline_turn turn = turns->turn[i];
        assert_int_equal(tr__chunk_stage(&turns->chunks, turn.chunk), stage);
        assert_true(turn.wave >= 0 && turn.wave < turns->waves);
        assert_int_equal(seen[turn.kind][turn.chunk][turn.wave]++, 0);
        assert_true(begin_of(turns, turn) >= end);
        assert_follows(turns, turn);
        end = tr__pipeline_turn_end(turns, turn);
    }
    return end;
}

// Forwards of the stage's chunks are in the order of waves.
static void assert_one_by_one(const tr_turns *turns) {
    int64_t forwards = 0;
    for (int64_t i = 0; i < turns->count; i++) {
        if (turns->turn[i].kind == TR_TURN_FORWARD) {
            assert_int_equal(turns->turn[i].wave, forwards++ / turns->chunks.each);
        }
    }
}

static int64_t assert_sound_of(going how, tr_pipeline_order order, int64_t stages,
                               int64_t each, int64_t waves) {
    int64_t end = 0, kinds = tr__pipeline_schedule(order)->weights_later ? 3 : 2;
    tr_turns first;
    make_of(how, order, stages, each, waves, 0, &first);
    size_t ends = (size_t)(TR_TURN_KINDS * stages * each * waves);
    for (int64_t s = 0; s < stages; s++) {
        tr_turns turns;
        make_of(how, order, stages, each, waves, s, &turns);
        int64_t last = assert_whole(&turns, kinds, s);
        end = last > end ? last : end;
        if (how == TRAINS_ONE_BY_ONE) {
            assert_one_by_one(&turns);
        }
        assert_memory_equal(turns.ends, first.ends, ends * sizeof *turns.ends);
        tr__turns_clear(&turns);
    }
    tr__turns_clear(&first);
    return end;
}

static int64_t assert_sound(tr_pipeline_order order, int64_t stages, int64_t each,
                            int64_t waves) {
    return assert_sound_of(TRAINS, order, stages, each, waves);
}

static void every_wave_goes_through_every_chunk(void **state) {
    (void)state;
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t waves = 1; waves <= 21; waves++) {
            assert_sound(TR_PIPELINE_1F1B, stages, 1, waves);
            assert_sound(TR_PIPELINE_ZERO_BUBBLE, stages, 1, waves);
            assert_sound(TR_PIPELINE_V, stages, 2, waves);
            for (int64_t each = 1; each <= 4; each++) {
                assert_sound(TR_PIPELINE_INTERLEAVED, stages, each, waves);
                assert_sound(TR_PIPELINE_BREADTH_FIRST, stages, each, waves);
            }
        }
    }
}

// One by one they do so, too; with one chunk of a stage that is no other order. Two
// stages of two chunks still wait less than with one, if the last group is whole.
static void every_wave_goes_through_one_by_one(void **state) {
    const going how = TRAINS_ONE_BY_ONE;
    (void)state;
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t waves = 1; waves <= 21; waves++) {
            int64_t one = assert_sound_of(how, TR_PIPELINE_1F1B, stages, 1, waves);
            assert_int_equal(one, assert_sound(TR_PIPELINE_1F1B, stages, 1, waves));
            assert_sound_of(how, TR_PIPELINE_ZERO_BUBBLE, stages, 1, waves);
            assert_sound_of(how, TR_PIPELINE_V, stages, 2, waves);
            for (int64_t each = 1; each <= 4; each++) {
                int64_t end =
                    assert_sound_of(how, TR_PIPELINE_INTERLEAVED, stages, each, waves);
                assert_true(stages != 2 || each != 2 || end < 2 * one + waves % 2);
                assert_sound_of(how, TR_PIPELINE_BREADTH_FIRST, stages, each, waves);
            }
        }
    }
}

// A table of docs/parallelism.md: a step of 4 p waves, where the forward of half of a
// stage takes 1.
static void one_by_one_is_as_the_documents_say(void **state) {
    static const tr_pipeline_order orders[] = {
        TR_PIPELINE_1F1B, TR_PIPELINE_ZERO_BUBBLE, TR_PIPELINE_INTERLEAVED,
        TR_PIPELINE_BREADTH_FIRST, TR_PIPELINE_V};
    static const int64_t told[3][5] = {
        {54, 50, 52, 59, 51}, {84, 76, 83, 102, 79}, {114, 102, 129, 153, 137}};
    (void)state;
    for (int64_t stages = 2; stages <= 4; stages++) {
        for (int i = 0; i < 5; i++) {
            int64_t each = i < 2 ? 1 : 2;
            int64_t end =
                assert_sound_of(TRAINS_ONE_BY_ONE, orders[i], stages, each, 4 * stages);
            assert_int_equal(end * 2 / each, told[stages - 2][i]);
        }
    }
}

// Beside its turns, which take 3 v m, each stage waits: (p - 1) / m of that with one
// chunk and (p - 1) / (v m) with v of them (arXiv 2104.04473, section 2.2).
static void bubbles_are_the_literatures(void **state) {
    (void)state;
    for (int64_t p = 2; p <= 8; p++) {
        for (int64_t m = p; m <= 6 * p; m += p) {
            int64_t waits = 3 * (p - 1);
            assert_int_equal(assert_sound(TR_PIPELINE_1F1B, p, 1, m), 3 * m + waits);
            for (int64_t v = 2; v <= 4; v++) {
                assert_int_equal(assert_sound(TR_PIPELINE_INTERLEAVED, p, v, m),
                                 3 * v * m + waits);
                assert_int_equal(assert_sound(TR_PIPELINE_BREADTH_FIRST, p, v, m),
                                 3 * v * m + waits);
            }
        }
    }
}

// Where forward, backward and gradients of weights take equal time, a stage waits for
// (p - 1) / 3 m of its turns (arXiv 2401.10241, table 2), and in a V for half of that:
// no wave reaches the last stage sooner.
static void bubbles_without_weights_are_smaller(void **state) {
    (void)state;
    for (int64_t p = 2; p <= 8; p++) {
        for (int64_t m = p; m <= 6 * p; m += p) {
            assert_int_equal(assert_sound(TR_PIPELINE_ZERO_BUBBLE, p, 1, m),
                             3 * m + p - 1);
            if (m >= 2 * p) {
                assert_int_equal(assert_sound(TR_PIPELINE_V, p, 2, m),
                                 3 * 2 * m + p - 1);
            }
        }
    }
}

// Of activations a stage keeps no more than the first stage of 1F1B does.
static void activations_are_bounded(void **state) {
    (void)state;
    static const tr_pipeline_order orders[] = {TR_PIPELINE_ZERO_BUBBLE, TR_PIPELINE_V};
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t i = 0; i < 2 * stages; i++) {
            int64_t kept = 0, most = 0, each = 1 + i / stages;
            tr_turns turns;
            make(orders[i / stages], stages, each, 24, i % stages, &turns);
            for (int64_t k = 0; k < turns.count; k++) {
                kept += turns.turn[k].kind == TR_TURN_FORWARD;
                kept -= turns.turn[k].kind == TR_TURN_WEIGHTS;
                most = kept > most ? kept : most;
            }
            assert_int_equal(most, each * stages);
            tr__turns_clear(&turns);
        }
    }
}

// One more than stages follow it.
static void waves_under_way_are_bounded(void **state) {
    (void)state;
    for (int64_t stages = 1; stages <= 9; stages++) {
        for (int64_t s = 0; s < stages; s++) {
            tr_turns turns;
            make(TR_PIPELINE_1F1B, stages, 1, 12, s, &turns);
            assert_int_equal(tr__turns_under_way(&turns, TR_TURN_BACKWARD, (int)s),
                             stages - s);
            tr__turns_clear(&turns);
            make(TR_PIPELINE_BREADTH_FIRST, stages, 2, 12, s, &turns);
            assert_int_equal(tr__turns_under_way(&turns, TR_TURN_BACKWARD, (int)s), 12);
            tr__turns_clear(&turns);
        }
    }
}

// Where chunks go round, no stage waits from its first turn to its last; so none does
// where evaluations follow each other. Where they fold, waves come back once.
static void evaluations_keep_stages_at_work(void **state) {
    static const struct {
        tr_pipeline_order order;
        int64_t least, most;
    } all[] = {{TR_PIPELINE_1F1B, 1, 1},
               {TR_PIPELINE_INTERLEAVED, 2, 4},
               {TR_PIPELINE_BREADTH_FIRST, 1, 4},
               {TR_PIPELINE_ZERO_BUBBLE, 1, 1},
               {TR_PIPELINE_V, 2, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int64_t at = 0; at < 9 * all[i].most; at++) {
            int64_t stages = at % 9 + 1, each = at / 9 + 1;
            bool folds = all[i].order == TR_PIPELINE_V;
            const tr_chunks chunks = {stages, each, folds};
            int64_t waves = tr__pipeline_evaluated(&chunks);
            for (int64_t s = 0; s < stages && each >= all[i].least; s++) {
                tr_turns turns;
                make_of(EVALUATES, all[i].order, stages, each, waves, s, &turns);
                int64_t end = assert_whole(&turns, 1, s),
                        begin = begin_of(&turns, turns.turn[0]);
                int64_t waits = folds ? 2 * (stages - 1 - s) : 0;
                assert_int_equal(begin, s);
                assert_int_equal(end - begin, each * waves + waits);
                int last = tr__stage_chunk(&turns.chunks, s, each - 1);
                assert_true(tr__turns_under_way(&turns, TR_TURN_FORWARD, last) <=
                            (each > 1 ? 2 * stages : 1));
                tr__turns_clear(&turns);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwards_run_ahead_of_backwards),
        cmocka_unit_test(chunks_go_round_the_stages),
        cmocka_unit_test(gradients_of_weights_fill_gaps),
        cmocka_unit_test(waves_go_forward_one_by_one),
        cmocka_unit_test(every_wave_goes_through_every_chunk),
        cmocka_unit_test(every_wave_goes_through_one_by_one),
        cmocka_unit_test(one_by_one_is_as_the_documents_say),
        cmocka_unit_test(bubbles_are_the_literatures),
        cmocka_unit_test(bubbles_without_weights_are_smaller),
        cmocka_unit_test(activations_are_bounded),
        cmocka_unit_test(waves_under_way_are_bounded),
        cmocka_unit_test(evaluations_keep_stages_at_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
