// Run on two ranks of the tensor axis, or on four, two on the data axis by two on the
// tensor axis: a GPT-2 in which ranks sum activations, and in the backward gradients,
// in the middle of units, so that their programs are cut into pieces there. What both
// ranks of a tensor group have is the same, so each sum is twice that: on one rank the
// same model adds tensors to themselves, and no bit may differ.
#include "comm/comm.h"
#include "comm/mesh.h"
#include "on_ranks.h"
#include "ops/nn/linear/linear.h"
#include "plan/flow/passes.h"
#include "train/noise_by_hand.h"
#include "train/snapshot.h"

#include <tranche/extend/rewrite.h>

#include <stdio.h>
#include <string.h>

enum { STEPS = 3, BATCH = 14, MICRO = 2 };

static tr_comm *comm;

// ---- the model

static bool on_mesh; // else on one rank

static tr_value twice(tr_graph *graph, tr_value x) {
    if (!on_mesh) {
        return tr_residual(graph, x, x, 0);
    }
    return tr_all_reduce(graph, tr_all_reduce_gradient(graph, x, TR_ON_TENSOR),
                         TR_ON_TENSOR);
}

// A gradient to which two exchanges contribute.
static tr_value four_times(tr_graph *graph, tr_value x) {
    if (!on_mesh) {
        tr_value sum = tr_residual(graph, x, x, 0);
        return tr_residual(graph, sum, sum, 0);
    }
    tr_value first = tr_all_reduce_gradient(graph, x, TR_ON_TENSOR);
    tr_value second = tr_all_reduce_gradient(graph, x, TR_ON_TENSOR);
    return tr_all_reduce(graph, tr_residual(graph, first, second, 0), TR_ON_TENSOR);
}

// Before a linear layer and behind it.
static bool multiply_linear(tr_graph *graph, const tr_rewrite_node *node,
                            tr_value *results) {
    tr_rewrite_node inner = *node;
    tr_value in[TR_OP_IN_MAX];
    memcpy(in, node->in, (size_t)node->in_count * sizeof *in);
    in[0] = four_times(graph, in[0]);
    inner.in = in;
    tr_rewrite_as(graph, &inner, node->op, node->attr, results);
    results[0] = twice(graph, results[0]);
    return true;
}

static const tr_rewrite rows[] = {
    {.op = &tr__op_linear, .variant = TR_REWRITE_ALWAYS, .write = multiply_linear},
    {.write = NULL},
};

// ---- how it is cut

typedef struct cut {
    int64_t wave;
    int stage, recomputed_units;
    uint32_t recomputed_ops; // 0: the default
    bool offload;
    int alternating;
} cut;

static tr_space place_of(const cut *how) {
    return how->offload ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

static void open_model(const run_options *options, const tr_mesh *mesh, const cut *how,
                       trial *t) {
    tr_error err = {0};
    int64_t data = mesh->size[TR_AXIS_DATA];
    *t = (trial){0};
    on_mesh = tr_mesh_ranks(mesh) > 1;
    trial_ok(run_open(options, &t->run, &err), &err);
    tr_plan_request request = *tr_run_plan_request(t->run);
    tr_model *model = (tr_model *)(uintptr_t)request.model;
    model->rewrites = rows;
    model->rewrites_version = TRANCHE_EXTEND_VERSION;
    request.mesh = *mesh;
    request.accumulation_steps =
        (request.train_batch_size + MICRO * data - 1) / (MICRO * data);
    request.wave = how->wave;
    request.tensor_ranks_alike = true;
    request.stage = how->stage;
    request.recomputed_units = how->recomputed_units;
    request.recomputed_ops = how->recomputed_ops;
    request.alternating = how->alternating;
    request.grad_placement = request.optimizer_placement = place_of(how);
    request.param_placement = request.saved_placement = place_of(how);
    trial_ok(tr__plan_build(&request, &t->plan, &err), &err);
    trial_ok(tr_engine_create(t->run, t->plan, &t->engine, &err), &err);
}

// ---- training

typedef struct outcome {
    tr_step_result results[STEPS];
    tr_evaluation evaluation;
    snapshot end;
} outcome;

static int64_t exchanges_inside(const tr_plan *plan) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int64_t count = 0;
    for (size_t i = 0; i < train->count; i++) {
        const tr_plan_step *step = &train->steps[i];
        count += step->shape == TR_STEP_IS_EXCHANGE &&
                 step->payload.exchange.part == TR_PART_TENSOR;
    }
    return count;
}

// Each rank sends what its plan says.
static void train(const run_options *options, const tr_mesh *mesh, const cut *how,
                  outcome *o) {
    tr_error err = {0};
    trial t;
    open_model(options, mesh, how, &t);
    const tr_traffic *planned = &t.plan->traffic;
    assert_true((exchanges_inside(t.plan) > 0) == on_mesh);
    for (int i = 0; i < STEPS; i++) {
        tr_comm_totals before = {0}, after = {0};
        before = t.engine->comm ? tr__comm_totals(t.engine->comm) : before;
        trial_steps(&t, 1, &o->results[i]);
        after = t.engine->comm ? tr__comm_totals(t.engine->comm) : after;
        assert_int_equal(after.gather_bytes - before.gather_bytes, planned->gather);
        assert_int_equal(after.reduce_bytes - before.reduce_bytes, planned->reduce);
    }
    o->evaluation = (tr_evaluation)TR_EVALUATION_INIT;
    trial_ok(tr_engine_evaluate(t.engine, 0, &o->evaluation, &err), &err);
    snapshot_gather(&o->end, &t);
    trial_close(&t);
}

static void assert_same(const outcome *a, const outcome *b) {
    for (int i = 0; i < STEPS; i++) {
        assert_memory_equal(&a->results[i].loss, &b->results[i].loss, sizeof(double));
        assert_memory_equal(&a->results[i].grad_norm, &b->results[i].grad_norm,
                            sizeof(double));
    }
    assert_memory_equal(&a->evaluation.loss, &b->evaluation.loss, sizeof(double));
    snapshot_assert_same(&a->end, &b->end);
}

static void no_bit_differs(const char *more) {
    static const cut cuts[] = {
        {.wave = 1},
        {.wave = 2, .stage = 3},
        {.wave = 1, .stage = 2, .recomputed_units = 2},
        {.wave = 3, .stage = 1, .recomputed_units = 3},
        {.wave = 1, .recomputed_ops = TR_RECOMPUTE_ALL},
        {.wave = 2, .stage = 3, .recomputed_units = 1, .offload = true},
    };
    int ranks = tr_comm_ranks(comm);
    const tr_mesh mesh = {.size = {ranks / 2, 2, 1}};
    const tr_mesh here = tr__mesh_of_rank(&mesh, tr_comm_rank(comm));
    const tr_mesh alone = tr_mesh_of_data(1, 0);
    char text[NOISE_TEXT_MAX];
    samples tokens, validation;
    outcome one, many;
    samples_tokens(&tokens, STEPS * BATCH, 8, 31, 5);
    samples_tokens(&validation, 11, 8, 31, 6);
    noise_run(text, BATCH, MICRO, ", \"reproducible\": true, \"wave\": 1", more);
    run_options options = {.text = text,
                           .own_train = tokens.dataset,
                           .own_validation = validation.dataset,
                           .resume = "never"};
    train(&options, &alone, &cuts[0], &one);
    options.comm = comm;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        train(&options, &here, &cuts[i], &many);
        assert_same(&many, &one);
        snapshot_free(&many.end);
    }
    snapshot_free(&one.end);
    samples_free(&tokens);
    samples_free(&validation);
}

static void in_f32(void **state) {
    (void)state;
    no_bit_differs("");
}

static void in_16_bits(void **state) {
    (void)state;
    no_bit_differs(", \"bf16\": {\"enabled\": true}");
}

// Sums of floats, too, are added up in one order, however many take turns.
static void turns_change_no_bit(void **state) {
    static const cut cuts[] = {
        {.wave = 4, .recomputed_units = 3, .alternating = 1},
        {.wave = 4, .recomputed_units = 3, .alternating = 2},
        {.wave = 4, .recomputed_units = 3, .alternating = 4},
        {.wave = 4, .stage = 1, .recomputed_units = 2, .alternating = 3}};
    const tr_mesh mesh = {.size = {tr_comm_ranks(comm) / 2, 2, 1}};
    const tr_mesh here = tr__mesh_of_rank(&mesh, tr_comm_rank(comm));
    char text[NOISE_TEXT_MAX];
    samples tokens;
    outcome all[sizeof cuts / sizeof *cuts];
    (void)state;
    samples_tokens(&tokens, STEPS * BATCH, 8, 31, 5);
    noise_run(text, BATCH, MICRO, ", \"wave\": 1", "");
    const run_options options = {.text = text,
                                 .own_train = tokens.dataset,
                                 .own_validation = tokens.dataset,
                                 .comm = comm,
                                 .resume = "never"};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        train(&options, &here, &cuts[i], &all[i]);
        assert_same(&all[i], &all[0]);
    }
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        snapshot_free(&all[i].end);
    }
    samples_free(&tokens);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_f32),
                                       cmocka_unit_test(in_16_bits),
                                       cmocka_unit_test(turns_change_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
