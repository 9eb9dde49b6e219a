// Ranks of the tensor axis exchange beside pieces of a unit's program that touch other
// bytes: which pieces these are, what each of them waits for, and what must not be.
#include "plan/flow/passes.h"
#include "plan/flow/roles.h"
#include "plan/models.h"
#include "plan/proof/check.h"
#include "plan/units/offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MICROS = 2 };

static tr_plan_request on_ranks(const tr_model *model, bool sequence) {
    tr_plan_request request = test_request(model, 2, MICROS);
    request.mesh.size[TR_AXIS_TENSOR] = 2;
    request.sequence_parallel = sequence;
    return request;
}

static tr_plan *plan_on_ranks(const tr_model *model, bool sequence) {
    tr_plan_request request = on_ranks(model, sequence);
    return test_plan(&request);
}

static const tr_unit_program *block_of(const tr_plan *plan) {
    return plan->units[1].program;
}

// ---- which pieces there are

static bool has_weights(const tr_program *piece) {
    bool some = false;
    for (size_t i = 0; i < piece->count; i++) {
        some = some || piece->instructions[i].out[0].place == TR_PLACE_PARAM_GRAD;
    }
    return some;
}

// Does the step run such a piece right behind an exchange?
static bool is_beside(const tr_plan_step *step) {
    const tr_program *piece = tr__payload_program(step);
    return piece && step[-1].stream == TR_STREAM_TENSOR && has_weights(piece) &&
           piece->received_count == 0;
}

// Of a block's two sums of gradients, the weights of the layer that comes first in it
// are computed beside each.
static void assert_beside(bool sequence, int exchanges) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan *plan = plan_on_ranks(model, sequence);
    const tr_unit_program *block = block_of(plan);
    int pieces = tr__unit_pieces(block, TR_VARIANT_BACKWARD), beside = 0, found = 0;
    for (int i = 0; i + 1 < pieces; i++) {
        const tr_program *piece = tr__unit_piece(block, TR_VARIANT_BACKWARD, i);
        const tr_program *next = tr__unit_piece(block, TR_VARIANT_BACKWARD, i + 1);
        uint32_t halves = piece->exchange
                              ? piece->instructions[0].desc.op->flags &
                                    (uint32_t)(TR_OP_GATHERS | TR_OP_REDUCES)
                              : 0;
        bool sums = piece->exchange && halves != TR_OP_GATHERS;
        found += piece->exchange != 0;
        beside += sums && has_weights(next);
    }
    assert_int_equal(found, exchanges);
    assert_int_equal(beside, 2);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void weights_are_a_piece_beside_the_sum(void **state) {
    (void)state;
    assert_beside(false, 2);
}

// Each layer's input is gathered for its weights, and what it hands on for both.
static void with_tokens_cut_the_same(void **state) {
    (void)state;
    assert_beside(true, 6);
}

// ---- what steps wait for

// Does the step begin before the exchanges of its unit and micro-batch are done that
// come before it?
static bool goes_beside(const tr_plan_step *steps, size_t at) {
    int32_t begun = 0;
    for (size_t i = 0; i < at; i++) {
        begun += steps[i].stream == TR_STREAM_TENSOR;
    }
    return steps[at].wait[TR_STREAM_TENSOR] < begun;
}

static void the_piece_beside_does_not_wait(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan *plan = plan_on_ranks(model, false);
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int beside = 0, behind = 0;
    for (size_t i = 1; i + 1 < train->count; i++) {
        const tr_plan_step *step = &train->steps[i], *next = step + 1;
        if (!is_beside(step)) {
            continue;
        }
        assert_true(goes_beside(train->steps, i));
        assert_false(goes_beside(train->steps, i + 1));
        beside++;
        behind += next->unit == step->unit && next->micro == step->micro;
    }
    assert_int_equal(beside, 2 * 2 * MICROS); // of two layers, two exchanges
    assert_int_equal(behind, beside);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// ---- micro-batches that take turns

// A wave of so many micro-batches, of which no gradient is measured.
static tr_plan *plan_of_wave(const tr_model *model, int64_t wave, int recomputed,
                             int alternating) {
    tr_plan_request request = on_ranks(model, false);
    request.accumulation_steps = wave;
    request.train_batch_size = 2 * wave;
    request.wave = wave;
    request.recomputed_units = recomputed;
    request.alternating = alternating;
    request.measure = TR_MEASURE_NEVER;
    return test_plan(&request);
}

// How often a program of the unit follows, in that role, one of another micro-batch
// that has not come to its end: so many exchanges have something beside them.
static int count_turns(const tr_plan *plan, int unit, tr_variant role) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    const tr_plan_step *last = NULL;
    int turns = 0;
    for (size_t i = 0; i < train->count; i++) {
        const tr_plan_step *step = &train->steps[i];
        if (step->unit == unit && tr__step_runs(step, role)) {
            turns += last && last->micro != step->micro && !tr__step_ends(last);
            last = step;
        }
    }
    return turns;
}

static int compute_pieces(const tr_plan *plan, int unit, tr_variant role) {
    const tr_unit_program *of = plan->units[unit].program;
    int count = 0;
    for (int i = 0; i < tr__unit_pieces(of, role); i++) {
        count += tr__unit_piece(of, role, i)->exchange == 0;
    }
    return count;
}

// All but the last piece of each micro-batch of a group of four, of which no other
// begins a group, are followed by one of another micro-batch.
static void micro_batches_take_turns(void **state) {
    static const int64_t waves[] = {1, 2, 3, 4, 5, 8};
    tr_model *model = test_model_small_gpt2(0);
    (void)state;
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++) {
        tr_plan *plan = plan_of_wave(model, waves[i], 0, 0);
        int in_turns = (int)(waves[i] % 4 == 1 ? waves[i] - 1 : waves[i]);
        for (int u = 1; u < 3; u++) {
            int forward = compute_pieces(plan, u, TR_VARIANT_FORWARD) - 1;
            int backward = compute_pieces(plan, u, TR_VARIANT_BACKWARD) - 1;
            assert_true(forward > 1 && backward > 1);
            assert_int_equal(count_turns(plan, u, TR_VARIANT_FORWARD),
                             in_turns * forward);
            assert_int_equal(count_turns(plan, u, TR_VARIANT_BACKWARD),
                             in_turns * backward);
        }
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// What recomputed units make again is there for each micro-batch that takes turns: as
// many more bytes for each as the unit saves.
static void recomputed_units_take_turns(void **state) {
    static const int alternating[] = {1, 2, 4};
    tr_model *model = test_model_small_gpt2(0);
    int64_t least = 0;
    (void)state;
    for (size_t i = 0; i < sizeof alternating / sizeof *alternating; i++) {
        tr_plan *plan = plan_of_wave(model, 4, 3, alternating[i]);
        bool some = alternating[i] > 1;
        int again = compute_pieces(plan, 1, TR_VARIANT_RECOMPUTE) - 1,
            back = compute_pieces(plan, 1, TR_VARIANT_BACKWARD) - 1;
        int64_t bytes = tr_plan_ledger(plan)->total[TR_SPACE_DEVICE],
                saved = plan->units[1].program->saved_bytes;
        assert_true(again > 0 && back > 0);
        assert_int_equal(count_turns(plan, 1, TR_VARIANT_RECOMPUTE), some * 4 * again);
        assert_int_equal(count_turns(plan, 1, TR_VARIANT_BACKWARD), some * 4 * back);
        assert_true(!some || bytes >= least + (alternating[i] - 1) * saved);
        least = some ? least : bytes;
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// What a piece makes of the first micro-batch's gradient is read while it is there
// alone: another that adds to it before that is found.
static void a_measured_micro_batch_takes_turns(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = on_ranks(model, false);
    int spoilt = 0;
    (void)state;
    request.accumulation_steps = request.wave = 4;
    request.train_batch_size = 8;
    request.measure = TR_MEASURE_ALWAYS;
    tr_plan *plan = test_plan(&request);
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int pieces = compute_pieces(plan, 1, TR_VARIANT_BACKWARD) - 1;
    assert_int_equal(count_turns(plan, 1, TR_VARIANT_BACKWARD), 4 * pieces);
    for (size_t i = 0; i + 1 < train->count; i++) {
        tr_plan_step *step = &train->steps[i], a = step[0], b = step[1];
        tr_error err = {0};
        if (a.label.verb != TR_VERB_micro_norm || a.unit != b.unit ||
            !tr__step_runs(&b, TR_VARIANT_BACKWARD)) {
            continue;
        }
        step[0] = b;
        step[1] = a;
        assert_int_equal(tr__plan_check(plan, &err), TR_INTERNAL);
        step[0] = a;
        step[1] = b;
        spoilt++;
    }
    assert_true(spoilt > 2);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// A piece that comes before that of the micro-batch before it adds in another order.
static void pieces_keep_the_order_of_micro_batches(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan *plan = plan_of_wave(model, 2, 0, 0);
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int spoilt = 0;
    (void)state;
    for (size_t i = 0; i + 1 < train->count; i++) {
        tr_plan_step *step = &train->steps[i], a = step[0], b = step[1];
        bool turn = tr__payload_program(&a) && tr__payload_program(&b) &&
                    a.payload.program == b.payload.program && a.micro != b.micro;
        if (turn) {
            tr_error err = {0};
            step[0] = b;
            step[1] = a;
            assert_int_equal(tr__plan_check(plan, &err), TR_INTERNAL);
            step[0] = a;
            step[1] = b;
            spoilt++;
        }
    }
    tr_error err = {0};
    assert_int_equal(tr__plan_check(plan, &err), TR_OK);
    assert_true(spoilt > 4);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// ---- what must not be

static void must_refuse(const tr_plan *plan, const char *what) {
    tr_error err = {0};
    if (tr__check_pieces(plan, &err) != TR_INTERNAL) {
        fail_msg("%s is taken for right", what);
    }
}

// The exchange before piece `i`; NULL: nothing goes on beside the piece.
static const tr_instruction *beside_piece(const tr_unit_program *unit, int i) {
    bool some = i > 0 && unit->programs[i - 1].exchange &&
                unit->programs[i].received_count == 0 && !unit->programs[i].begins;
    return some ? &unit->programs[i - 1].instructions[0] : NULL;
}

static int spoil_operands(const tr_plan *plan, tr_program *piece,
                          const tr_instruction *exchange) {
    int spoilt = 0;
    for (size_t i = 0; i < piece->count; i++) {
        tr_instruction *at = &piece->instructions[i];
        for (int k = 0; k < at->desc.in_count + at->desc.out_count; k++) {
            tr_operand *operand =
                k < at->desc.in_count ? &at->in[k] : &at->out[k - at->desc.in_count];
            tr_operand right = *operand;
            int64_t last = tr_tensor_bytes(exchange->desc.out[0]) - 1;
            if (right.place != TR_PLACE_NONE) {
                *operand = exchange->out[0];
                must_refuse(plan, "an operand in what is exchanged");
                operand->offset += last;
                must_refuse(plan, "an operand in the last byte of what is exchanged");
                spoilt++;
            }
            *operand = right;
        }
    }
    return spoilt;
}

static int spoil_received(const tr_plan *plan, tr_program *piece) {
    int spoilt = 0;
    for (size_t i = 0; i < piece->received_count; i++) {
        tr_received *received = &piece->received[i], right = *received;
        received->bytes--;
        must_refuse(plan, "a piece that waits for less");
        *received = right;
        received->operand.offset += TR_ALIGNMENT;
        must_refuse(plan, "a piece that waits for something else");
        *received = right;
        piece->received_count--;
        must_refuse(plan, "a piece that does not wait");
        piece->received_count++;
        spoilt++;
    }
    return spoilt;
}

static void what_works_on_an_exchange_is_found(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    int operands = 0, waits = 0;
    (void)state;
    for (int sequence = 0; sequence < 2; sequence++) {
        tr_plan *plan = plan_on_ranks(model, sequence);
        tr_unit_program *unit = plan->units[1].program;
        for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
            const tr_instruction *exchange = beside_piece(unit, i);
            operands +=
                exchange ? spoil_operands(plan, &unit->programs[i], exchange) : 0;
            waits += spoil_received(plan, &unit->programs[i]);
        }
        tr_plan_destroy(plan);
    }
    assert_true(operands > 10 && waits > 10);
    tr_model_destroy(model);
}

// A step that works where ranks exchange is found, whatever its program says.
static void a_piece_in_the_exchanges_buffer_is_found(void **state) {
    tr_model *model = test_model_gpt2();
    tr_plan *plan = plan_on_ranks(model, false);
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int spoilt = 0;
    (void)state;
    for (size_t i = 1; i < train->count && spoilt < 4; i++) {
        const tr_plan_step *step = &train->steps[i];
        tr_step_operand *work =
            is_beside(step) ? tr__step_block(plan, step, TR_PLACE_TEMP, 0, false)
                            : NULL;
        if (work) {
            tr_error err = {0};
            int32_t right = work->buffer;
            work->buffer =
                tr__step_operand(plan, &step[-1], TR_EXCHANGE_RECEIVE)->buffer;
            assert_int_equal(tr__plan_check(plan, &err), TR_INTERNAL);
            assert_non_null(strstr(err.message, "may still be writing it"));
            work->buffer = right;
            spoilt++;
        }
    }
    tr_error err = {0};
    assert_int_equal(tr__plan_check(plan, &err), TR_OK);
    assert_int_equal(spoilt, 4);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_a_piece_beside_the_sum),
        cmocka_unit_test(with_tokens_cut_the_same),
        cmocka_unit_test(the_piece_beside_does_not_wait),
        cmocka_unit_test(micro_batches_take_turns),
        cmocka_unit_test(recomputed_units_take_turns),
        cmocka_unit_test(a_measured_micro_batch_takes_turns),
        cmocka_unit_test(pieces_keep_the_order_of_micro_batches),
        cmocka_unit_test(what_works_on_an_exchange_is_found),
        cmocka_unit_test(a_piece_in_the_exchanges_buffer_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
