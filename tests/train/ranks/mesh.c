// Run on four ranks, two on the data axis by two on the tensor axis, along which
// nothing is split: groups of two exchange gradients and parameters at the same time,
// and both ranks of a tensor group do the same work. Norms, losses, the noise scale and
// checkpoints count it once, so that nothing differs from a run without the axis. With
// the argument "tensor" all four lie on the tensor axis.
#include "comm/comm.h"
#include "on_ranks.h"
#include "plan/flow/passes.h"
#include "train/noise_by_hand.h"
#include "train/scratch.h"
#include "train/snapshot.h"
#include "train/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, BATCH = 14, MICRO = 2, PATH_BYTES = 512 };

static tr_comm *comm;
static tr_mesh mesh = {.size = {2, 2, 1}}; // data, tensor, pipeline

// On the mesh. `wave`: 0: chosen.
static void open_on_mesh(const run_options *options, int64_t wave, trial *t) {
    tr_error err = {0};
    int64_t data = mesh.size[TR_AXIS_DATA];
    *t = (trial){0};
    trial_ok(run_open(options, &t->run, &err), &err);
    tr_plan_request request = *tr_run_plan_request(t->run);
    request.mesh = tr__mesh_of_rank(&mesh, tr_comm_rank(comm));
    request.accumulation_steps =
        (request.train_batch_size + MICRO * data - 1) / (MICRO * data);
    request.wave = wave;
    request.tensor_ranks_alike = true;
    trial_ok(tr__plan_build(&request, &t->plan, &err), &err);
    trial_ok(tr_engine_create(t->run, t->plan, &t->engine, &err), &err);
}

// ---- bits

typedef struct outcome {
    tr_step_result results[STEPS];
    tr_evaluation evaluation;
    snapshot end;
} outcome;

// Each rank sends what its plan says: over its data group, and over all.
static void train(trial *t, outcome *o) {
    tr_error err = {0};
    const tr_traffic *planned = &t->plan->traffic;
    for (int i = 0; i < STEPS; i++) {
        tr_comm_totals before = {0}, after = {0};
        before = t->engine->comm ? tr__comm_totals(t->engine->comm) : before;
        trial_steps(t, 1, &o->results[i]);
        after = t->engine->comm ? tr__comm_totals(t->engine->comm) : after;
        assert_int_equal(after.gather_bytes - before.gather_bytes, planned->gather);
        assert_int_equal(after.reduce_bytes - before.reduce_bytes, planned->reduce);
    }
    o->evaluation.size = sizeof o->evaluation;
    trial_ok(tr_engine_evaluate(t->engine, 0, &o->evaluation, &err), &err);
    snapshot_gather(&o->end, t);
    trial_ok(tr_engine_save(t->engine, &err), &err);
}

static void assert_same(const outcome *a, const outcome *b) {
    for (int i = 0; i < STEPS; i++) {
        assert_memory_equal(&a->results[i].loss, &b->results[i].loss, sizeof(double));
        assert_memory_equal(&a->results[i].grad_norm, &b->results[i].grad_norm,
                            sizeof(double));
        assert_int_equal(a->results[i].targets, b->results[i].targets);
    }
    assert_memory_equal(&a->evaluation.loss, &b->evaluation.loss, sizeof(double));
    snapshot_assert_same(&a->end, &b->end);
}

// Together the ranks' own pieces are every element once.
static void check_owners(const trial *t) {
    tr_error err = {0};
    int64_t own = 0, all[4];
    for (size_t i = 0; i < t->plan->param_count; i++) {
        own += tr__executor_own(t->engine->executor, (int)i, -1).count;
    }
    trial_ok(tr__comm_all_gather(comm, &own, sizeof own, all, &err), &err);
    assert_int_equal(all[0] + all[1] + all[2] + all[3], tr_plan_parameters(t->plan));
    for (int r = 0; r < 4; r++) { // the first on the tensor axis
        assert_true((all[r] > 0) == (r % mesh.size[TR_AXIS_TENSOR] == 0));
    }
}

typedef struct data {
    samples train, validation;
} data;

static void write_run(char text[NOISE_TEXT_MAX], const char *more, const char *out) {
    char members[NOISE_TEXT_MAX / 2], *unused;
    snprintf(members, sizeof members, "%s", more);
    noise_run(text, BATCH, MICRO, ", \"reproducible\": true, \"wave\": 1", members);
    unused = strstr(text, "\"unused\"");
    assert_non_null(unused);
    char rest[NOISE_TEXT_MAX];
    snprintf(rest, sizeof rest, "%s", unused + strlen("\"unused\""));
    size_t used = (size_t)(unused - text);
    assert_true(snprintf(unused, NOISE_TEXT_MAX - used, "\"%s\"%s", out, rest) <
                (int)(NOISE_TEXT_MAX - used));
}

static run_options options_of(const data *d, const char *text, tr_comm *ranks) {
    return (run_options){.text = text,
                         .own_train = d->train.dataset,
                         .own_validation = d->validation.dataset,
                         .comm = ranks,
                         .resume = "never"};
}

// A folder of rank 0's, the same on all ranks.
static void shared_path(void *const *state, const char *name, char path[PATH_BYTES]) {
    tr_error err = {0};
    snprintf(path, PATH_BYTES, "%s", scratch_path(state, name));
    trial_ok(tr__comm_broadcast(comm, 0, path, PATH_BYTES, &err), &err);
}

static void train_alone(const data *d, const char *more, const char *out, outcome *o) {
    char text[NOISE_TEXT_MAX];
    trial t;
    write_run(text, more, out);
    run_options options = options_of(d, text, NULL);
    trial_open(&t, &options);
    train(&t, o);
    trial_close(&t);
}

static void train_on_mesh(const data *d, const char *more, const char *out,
                          outcome *o) {
    char text[NOISE_TEXT_MAX];
    tr_error err = {0};
    trial t;
    write_run(text, more, out);
    run_options options = options_of(d, text, comm);
    open_on_mesh(&options, 1, &t);
    train(&t, o);
    check_owners(&t);
    trial_close(&t);
    trial_ok(tr__comm_barrier(comm, &err), &err);
}

static void a_tensor_group_counts_once(void **state) {
    static const char *const more[] = {
        ", \"zero_optimization\": {\"stage\": 0}",
        ", \"zero_optimization\": {\"stage\": 1}",
        ", \"zero_optimization\": {\"stage\": 2}",
        ", \"zero_optimization\": {\"stage\": 3}",
        ", \"zero_optimization\": {\"stage\": 1}, \"optimizer\": {\"type\": \"LAMB\"}",
        ", \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": "
        "\"cpu\"}, \"offload_param\": {\"device\": \"cpu\"}}"};
    data d;
    samples_tokens(&d.train, STEPS * BATCH, 8, 31, 5);
    samples_tokens(&d.validation, 11, 8, 31, 6);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        char name[16], shared[PATH_BYTES], alone[PATH_MAX], here[PATH_MAX];
        outcome one, four;
        snprintf(name, sizeof name, "mesh-%zu", i);
        shared_path(state, name, shared);
        snprintf(name, sizeof name, "alone-%zu", i);
        train_alone(&d, more[i], scratch_path(state, name), &one);
        stored_latest(scratch_path(state, name), alone);
        train_on_mesh(&d, more[i], shared, &four);
        assert_same(&four, &one);
        stored_latest(shared, here);
        stored_assert_same(alone, here, "model.safetensors");
        stored_assert_same(alone, here, "optimizer.safetensors");
        snapshot_free(&one.end);
        snapshot_free(&four.end);
    }
    samples_free(&d.train);
    samples_free(&d.validation);
    tr_error err = {0};
    trial_ok(tr__comm_barrier(comm, &err), &err); // rank 0 removes what it shares
}

// ---- the noise scale

// The parts of the batch that it compares are those of the data ranks.
static void the_noise_scale_is_of_data_ranks(void **state) {
    samples tokens;
    (void)state;
    samples_tokens(&tokens, 24, 8, 31, 5);
    for (int stage = 0; stage < 4; stage++) {
        for (int64_t wave = 1; wave <= 2; wave++) {
            const noise_cut cut = {mesh.size[TR_AXIS_DATA], BATCH, MICRO, wave};
            char text[NOISE_TEXT_MAX], more[64];
            double trace, square;
            tr_step_result r = TR_STEP_RESULT_INIT;
            trial t;
            snprintf(more, sizeof more, ", \"zero_optimization\": {\"stage\": %d}",
                     stage);
            noise_by_hand(&tokens, &cut, &trace, &square);
            noise_run(text, BATCH, MICRO, ", \"wave\": 1", more);
            run_options options = {.text = text,
                                   .own_train = tokens.dataset,
                                   .comm = comm,
                                   .resume = "never"};
            open_on_mesh(&options, wave, &t);
            trial_steps(&t, 1, &r);
            noise_assert(&r, trace, square, text);
            trial_close(&t);
        }
    }
    samples_free(&tokens);
}

static int run(const char *which) {
    if (strcmp(which, "tensor") == 0) {
        mesh = (tr_mesh){.size = {1, 4, 1}};
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tensor_group_counts_once, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(the_noise_scale_is_of_data_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
