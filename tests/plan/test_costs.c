// What kernels say of their cost, against what the ops do.
#include "plan/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double dim(const tr_tensor_desc *tensor, int from_end) {
    return (double)tensor->shape.dim[tensor->shape.rank - 1 - from_end];
}

static double rows(const tr_tensor_desc *tensor) {
    return (double)tr_shape_count(tensor->shape) / dim(tensor, 0);
}

// Multiplications and additions of the products of an op, from its operands' shapes;
// -1: it has none.
static double product_flops(const tr_op_desc *d) {
    const char *name = d->op->name;
    if (strcmp(name, "linear") == 0) { // x [.., in] to y [.., out]
        return 2 * rows(&d->in[0]) * dim(&d->in[0], 0) * dim(&d->out[0], 0);
    }
    if (strcmp(name, "linear_backward_input") == 0) { // dy [.., out] to dx [.., in]
        return 2 * rows(&d->in[0]) * dim(&d->in[0], 0) * dim(&d->out[0], 0);
    }
    if (strcmp(name, "linear_backward_weight") == 0) { // dy, x
        return 2 * rows(&d->in[0]) * dim(&d->in[0], 0) * dim(&d->in[1], 0);
    }
    if (strcmp(name, "head_backward") == 0) { // logits, dx, dweight
        return 3 * 2 * rows(&d->in[0]) * (double)tr_shape_count(d->in[1].shape);
    }
    if (strcmp(name, "head_logits") == 0) { // one row of each sample
        return 2 * (double)d->in[0].shape.dim[0] *
               (double)tr_shape_count(d->in[1].shape);
    }
    if (strcmp(name, "head") == 0) {
        return 2 * rows(&d->in[0]) * (double)tr_shape_count(d->in[1].shape);
    }
    bool forward = strcmp(name, "attention") == 0;
    if (forward || strcmp(name, "attention_backward") == 0) {
        // Each query with the keys up to its own: S (S + 1) / 2 pairs of C elements.
        const tr_tensor_desc *qkv = &d->in[forward ? 0 : 1];
        double pairs = dim(qkv, 1) * (dim(qkv, 1) + 1) / 2;
        return (forward ? 2 : 5) * 2 * dim(qkv, 2) * pairs * dim(qkv, 0) / 3;
    }
    return -1;
}

static double largest(const tr_op_desc *d) {
    double most = 0;
    for (int i = 0; i < d->in_count + d->out_count; i++) {
        const tr_tensor_desc *t =
            i < d->in_count ? &d->in[i] : &d->out[i - d->in_count];
        double count = t->dtype == TR_NONE ? 0 : (double)tr_shape_count(t->shape);
        most = count > most ? count : most;
    }
    return most;
}

static double operand_bytes(const tr_op_desc *d) {
    double bytes = 0;
    for (int i = 0; i < d->in_count; i++) {
        bytes += (double)tr_tensor_bytes(d->in[i]);
    }
    for (int i = 0; i < d->out_count; i++) {
        bytes += (double)tr_tensor_bytes(d->out[i]);
    }
    return bytes;
}

// Products to within what else such an op does; others a few operations an element.
static void check_flops(const tr_op_desc *d, const tr_cost *cost) {
    enum { MOST_AN_ELEMENT = 40 };
    double products = product_flops(d);
    if (products < 0) {
        assert_true(cost->flops >= 0 && cost->flops <= MOST_AN_ELEMENT * largest(d));
        return;
    }
    double logits = strncmp(d->op->name, "head", 4) == 0
                        ? products / dim(&d->in[0], 0) * MOST_AN_ELEMENT
                        : 0;
    if (cost->flops < products || cost->flops > products + logits) {
        fail_msg("%s: %g operations, not %g", d->op->name, cost->flops, products);
    }
}

// Each operand once; of tables, the rows that are looked up.
static void check_bytes(const tr_op_desc *d, const tr_cost *cost) {
    if (strncmp(d->op->name, "embedding", 9) != 0) {
        if (cost->bytes != operand_bytes(d)) {
            fail_msg("%s: %g bytes, not %g", d->op->name, cost->bytes,
                     operand_bytes(d));
        }
        return;
    }
    bool forward = strcmp(d->op->name, "embedding") == 0;
    double moved = 4 * (double)tr_shape_count((forward ? d->out : d->in)[0].shape);
    assert_true(cost->bytes >= 3 * moved);
    assert_true(cost->bytes <= 5 * moved + operand_bytes(d));
}

static void check_program(const tr_program *program) {
    tr_cost sum = {0};
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *instruction = &program->instructions[i];
        tr_cost cost = {.flops = -1, .bytes = -1};
        assert_non_null(instruction->kernel->cost);
        instruction->kernel->cost(&instruction->desc, &cost);
        check_flops(&instruction->desc, &cost);
        check_bytes(&instruction->desc, &cost);
        sum.flops += cost.flops;
        sum.bytes += cost.bytes;
    }
    assert_true(program->cost.flops == sum.flops && program->cost.bytes == sum.bytes);
}

static void check_unit(const tr_unit_program *unit) {
    assert_int_equal(unit->first_of[TR_VARIANTS],
                     4 * unit->segments + 1 + tr__unit_pieces(unit, TR_VARIANT_TRACK));
    for (int i = 0; i < unit->first_of[TR_VARIANT_TRACK]; i++) {
        check_program(&unit->programs[i]);
    }
}

static void check_model(tr_model *model, bool reference) {
    tr_plan_request request = test_request(model, 2, 2);
    request.recomputed_units = -1;
    request.reference_kernels = reference;
    tr_plan *plan = test_plan(&request);
    for (int u = 0; u < plan->unit_count; u++) {
        check_unit(plan->units[u].program);
    }
    tr_plan_destroy(plan);
    request.inference = true;
    request.recomputed_units = 0;
    request.accumulation_steps = 1;
    request.train_batch_size = request.micro_batch;
    plan = test_plan(&request);
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        check_program(tr__unit_piece(unit, TR_VARIANT_INFERENCE, 0));
        assert_int_equal(unit->first_of[TR_VARIANTS], 1);
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void test_every_op(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        check_model(test_model_mlp(), reference);
        check_model(test_model_small_gpt2(0), reference);
        check_model(test_model_small_gpt2(0.1), reference);
    }
}

// GPT-2 124M, one sequence of 1,024: six operations for each weight of the products and
// token (two forward, four backward), and seven for each element of causal attention's
// pairs.
static void test_gpt2(void **state) {
    (void)state;
    const double C = 768, L = 12, V = 50257, S = 1024;
    double products = 6 * S * (L * 12 * C * C + V * C);
    double attention = 7 * 2 * L * C * S * (S + 1) / 2;
    tr_model *model = test_model_gpt2();
    tr_plan_request request = test_request(model, 1, 3);
    tr_plan *plan = test_plan(&request);
    double flops = tr_plan_flops(plan) / 3;
    assert_true(flops > products + attention);
    assert_true(flops < 1.01 * (products + attention));
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void assert_close(double value, double wanted) {
    if (!(fabs(value - wanted) <= 1e-12 * fabs(wanted))) {
        fail_msg("%.17g is not %.17g", value, wanted);
    }
}

// The formulas of papers: 72 B S L C C (1 + S / 6 C + V / 12 L C) for a step without
// recomputation (Narayanan et al., arXiv 2104.04473, less a third: there all is
// recomputed), and causal attention half of it, less the diagonal. Whole units that
// are recomputed make their forwards again, but for the last product of the MLP.
static void test_literature(void **state) {
    (void)state;
    const double C = 768, L = 12, V = 50257, S = 1024, B = 2;
    double full = 72 * B * S * L * C * C * (1 + S / (6 * C) + V / (12 * L * C));
    double attention = 12 * B * S * S * L * C, pairs = (S + 1) / (2 * S);
    double again = B * L * (2 * S * 8 * C * C + 4 * S * S * C);
    tr_model *model = test_model_gpt2();
    tr_plan_request request = test_request(model, 1, 2);
    tr_plan *plan = test_plan(&request);
    tr_model_flops f = tr_plan_model_flops(plan);
    assert_close(f.full, full);
    assert_close(f.causal, full - attention * (1 - pairs));
    assert_true(f.full_again == 0 && f.causal_again == 0);
    tr_plan_destroy(plan);
    request.recomputed_units = -1;
    plan = test_plan(&request);
    tr_model_flops r = tr_plan_model_flops(plan);
    assert_close(r.full, full);
    assert_close(r.full_again, again);
    assert_close(r.causal_again, again - B * L * 4 * S * S * C * (1 - pairs));
    tr_plan_destroy(plan);
    tr_model_destroy(model);
    assert_true(tr_plan_model_flops(NULL).full == 0);
}

// A head in slices makes its logits twice: the second time is no model's.
static void test_literature_slices(void **state) {
    (void)state;
    tr_model *models[] = {test_model_small_gpt2(0), test_model_sliced_gpt2(0, 2)};
    double full[2];
    for (int i = 0; i < 2; i++) {
        tr_plan_request request = test_request(models[i], 2, 1);
        tr_plan *plan = test_plan(&request);
        full[i] = tr_plan_model_flops(plan).full;
        tr_plan_destroy(plan);
        tr_model_destroy(models[i]);
    }
    assert_close(full[1], full[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_literature),
        cmocka_unit_test(test_literature_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
