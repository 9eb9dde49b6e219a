#include "plan/ordered.h"

#include "plan/flow/roles.h"
#include "plan/models.h"
#include "plan/print/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

const test_request_case test_cases[TEST_CASES] = {
    {2, 1, 1, 0}, {1, 5, 1, 0}, {1, 5, 2, 0},  {2, 5, 5, 0},
    {3, 4, 1, 2}, {1, 6, 3, 1}, {1, 5, 2, -1}, {2, 4, 4, -1},
};

tr_plan *test_plan_case(const tr_model *model, const test_request_case *c) {
    tr_plan_request request = test_request(model, c->m, c->g);
    request.wave = c->wave;
    request.recomputed_units = c->recomputed;
    return test_plan(&request);
}

const tr_sequence *test_training(const tr_plan *plan) {
    return &plan->sequences[TR_SEQUENCE_TRAIN];
}

int64_t test_count_steps(const tr_plan *plan, tr_verb verb) {
    int64_t count = 0;
    for (size_t i = 0; i < test_training(plan)->count; i++) {
        count += test_training(plan)->steps[i].label.verb == verb;
    }
    return count;
}

char *test_plan_text(const tr_plan *plan, bool json, size_t *length) {
    char *text = NULL;
    FILE *to = open_memstream(&text, length);
    tr_error err = {0};
    assert_non_null(to);
    tr_status status =
        json ? tr__plan_print_json(plan, to, &err) : tr__plan_print(plan, to, &err);
    assert_int_equal(status, TR_OK);
    fclose(to);
    return text;
}

void test_assert_written_once(const tr_plan *plan) {
    int *written = calloc(plan->flat_count, sizeof *written);
    bool *begun = calloc(plan->flat_count, sizeof *begun);
    assert_true(written && begun);
    for (size_t i = 0; i < test_training(plan)->count; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i];
        if (step->label.verb != TR_VERB_backward) {
            continue;
        }
        const tr_plan_unit *unit = &plan->units[step->unit];
        uint32_t touched = tr__program_flats(
            tr__unit_piece(unit->program, TR_VARIANT_BACKWARD, step->segment),
            TR_PLACE_PARAM_GRAD);
        for (int f = 0; f < unit->program->flat_count; f++) {
            int flat = unit->flats[f];
            if (!(touched >> f & 1)) {
                continue;
            }
            bool says =
                tr__step_block(plan, step, TR_PLACE_PARAM_GRAD, f, false)->mode ==
                TR_ACCESS_WRITE;
            assert_int_equal(says, !begun[flat]);
            begun[flat] = true;
            written[flat] += says;
        }
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        assert_int_equal(written[f], 1);
    }
    free(written);
    free(begun);
}

void test_assert_data(const tr_plan *plan) {
    int64_t loaded = 0, unloaded = 0;
    for (size_t i = 0; i < test_training(plan)->count; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i];
        if (step->label.verb == TR_VERB_load) {
            assert_int_equal(step->micro, loaded++);
        } else if (step->label.verb == TR_VERB_unload) {
            assert_int_equal(step->micro, unloaded++);
        } else if (step->label.verb == TR_VERB_forward ||
                   step->label.verb == TR_VERB_backward) {
            assert_true(step->micro < loaded && step->micro >= unloaded);
        }
        assert_true(loaded - unloaded <= plan->request.wave);
    }
    assert_int_equal(unloaded, plan->request.accumulation_steps);
}

void test_assert_end(const tr_plan *plan) {
    const tr_sequence *sequence = test_training(plan);
    size_t updates = plan->flat_count, first = tr__sequence_update(sequence);
    assert_int_equal(sequence->steps[0].label.verb, TR_VERB_clear);
    assert_int_equal(first, sequence->count - updates);
    assert_int_equal(sequence->steps[first - 4].label.verb, TR_VERB_norm);
    assert_int_equal(sequence->steps[first - 3].label.verb, TR_VERB_square_sums);
    assert_int_equal(sequence->steps[first - 2].label.verb, TR_VERB_report);
    assert_int_equal(sequence->steps[first - 1].label.verb, TR_VERB_decide);
    assert_int_equal(test_count_steps(plan, TR_VERB_decide), 1);
    assert_int_equal(test_count_steps(plan, TR_VERB_norm), 1);
    for (size_t i = 0; i < updates; i++) {
        const tr_plan_step *step = &sequence->steps[first + i];
        assert_int_equal(step->label.verb, TR_VERB_update);
        assert_int_equal(step->unit, i);
    }
}

void test_assert_recomputed(const tr_plan *plan) {
    for (size_t i = 0; i < test_training(plan)->count; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i];
        bool again =
            plan->units[step->label.verb == TR_VERB_update ? 0 : step->unit].recomputed;
        if (step->label.verb == TR_VERB_forward) {
            assert_int_equal(tr__step_runs(step, TR_VARIANT_SAVES_NOTHING), again);
        }
        if (step->label.verb == TR_VERB_backward && again) {
            assert_int_equal((step - 1)->label.verb, TR_VERB_recompute);
            assert_int_equal((step - 1)->unit, step->unit);
            assert_int_equal((step - 1)->micro, step->micro);
        }
    }
}
