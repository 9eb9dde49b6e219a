// Run on two ranks or four: GPT-2, whose ranks of the tensor axis share the work of
// layers, against one rank. Weights, moments and losses are the same but for rounding,
// with dropout, at every stage, recomputed, in micro-batches of other sizes; a
// checkpoint is that of one rank's in names and shapes, and goes on with any mesh; and
// a rank of two keeps half of what is split.
#include "comm/comm.h"
#include "comm/mesh.h"
#include "on_ranks.h"
#include "train/samples.h"
#include "train/scratch.h"
#include "train/snapshot.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 4, BATCH = 8, TEXT_MAX = 2048, PATH_BYTES = 512 };

static tr_comm *comm;

static void write_run(char text[TEXT_MAX], int micro, int tensor, const char *out,
                      const char *more) {
    int used = snprintf(
        text, TEXT_MAX,
        "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, "
        "\"n_head\": 4, \"n_positions\": 8, \"vocab_size\": 31}, \"steps\": 9, "
        "\"data\": {\"order\": \"sequential\"}, \"train_batch_size\": %d, "
        "\"train_micro_batch_size_per_gpu\": %d, \"optimizer\": {\"params\": {\"lr\": "
        "0.01, \"eps\": 1e-6}}, \"execution\": {\"threads\": 1}, \"tensor_parallel\": "
        "{\"size\": %d}, \"out\": \"%s\"%s}",
        BATCH, micro, tensor, out, more);
    assert_true(used > 0 && used < TEXT_MAX);
}

typedef struct outcome {
    snapshot start, end;
    double loss[STEPS];
} outcome;

static run_options options_of(const char *text, const samples *data, tr_comm *ranks,
                              const char *resume) {
    return (run_options){.text = text,
                         .own_train = data->dataset,
                         .own_validation = data->dataset,
                         .comm = ranks,
                         .resume = resume};
}

static void take_steps(const run_options *options, int64_t steps, bool saves,
                       outcome *o) {
    tr_step_result results[STEPS];
    tr_error err = {0};
    trial t;
    trial_open(&t, options);
    snapshot_gather(&o->start, &t);
    trial_steps(&t, steps, results);
    for (int i = 0; i < steps; i++) {
        o->loss[i] = results[i].loss;
    }
    snapshot_gather(&o->end, &t);
    if (saves) {
        trial_ok(tr_engine_save(t.engine, &err), &err);
    }
    trial_close(&t);
}

static void free_outcome(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->end);
}

static void assert_near(const outcome *one, const outcome *many, int64_t steps,
                        const char *what) {
    snapshot_assert_same(&one->start, &many->start);
    for (int i = 0; i < steps; i++) {
        if (!(many->loss[i] - one->loss[i] < 1e-5 &&
              one->loss[i] - many->loss[i] < 1e-5)) {
            fail_msg("%s: loss %g of step %d, and %g on one rank", what, many->loss[i],
                     i + 1, one->loss[i]);
        }
    }
    snapshot_assert_close(&one->start, &one->end, &many->end, 1e-4, what);
}

static void layers_are_shared(void **state) {
    static const struct {
        int micro;
        const char *more;
    } ways[] = {
        {2, ""},
        {4, ", \"zero_optimization\": {\"stage\": 3}"},
        {1, ", \"zero_optimization\": {\"stage\": 2}, \"activation_checkpointing\": "
            "{\"number_checkpoints\": 2}"},
        {3, ", \"zero_optimization\": {\"stage\": 1}"},
        {2, ", \"freeze\": [\"*c_fc*\"]"},
    };
    samples data;
    int ranks = tr_comm_ranks(comm);
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, 31, 5);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char text[TEXT_MAX], what[64];
        outcome one, many;
        write_run(text, 2, 1, "unused", i == 4 ? ways[i].more : "");
        run_options alone = options_of(text, &data, NULL, "never");
        take_steps(&alone, STEPS, false, &one);
        for (int tensor = 2; tensor <= ranks; tensor *= 2) {
            snprintf(what, sizeof what, "way %zu, tensor %d", i, tensor);
            write_run(text, ways[i].micro, tensor, "unused", ways[i].more);
            run_options options = options_of(text, &data, comm, "never");
            take_steps(&options, STEPS, false, &many);
            assert_near(&one, &many, STEPS, what);
            free_outcome(&many);
        }
        free_outcome(&one);
    }
    samples_free(&data);
}

// A folder of rank 0's, the same on all ranks.
static void shared_path(void *const *state, const char *name, char path[PATH_BYTES]) {
    tr_error err = {0};
    snprintf(path, PATH_BYTES, "%s", scratch_path(state, name));
    trial_ok(tr__comm_broadcast(comm, 0, path, PATH_BYTES, &err), &err);
}

// Two steps here, two there.
static void files_do_not_know_the_mesh(void **state) {
    enum { HALF = STEPS / 2 };
    samples data;
    char text[TEXT_MAX], path[PATH_BYTES], alone_path[PATH_BYTES];
    outcome one, first, second, alone;
    tr_error err = {0};
    samples_tokens(&data, STEPS * BATCH, 8, 31, 5);
    shared_path(state, "out", path);
    snprintf(alone_path, sizeof alone_path, "%s", scratch_path(state, "alone"));
    write_run(text, 2, 1, alone_path, "");
    run_options whole = options_of(text, &data, NULL, "never");
    take_steps(&whole, STEPS, false, &one);
    write_run(text, 2, 2, path, "");
    run_options shared = options_of(text, &data, comm, "never");
    take_steps(&shared, HALF, true, &first);
    write_run(text, 2, tr_comm_ranks(comm), path,
              ""); // another mesh, where there are four
    shared = options_of(text, &data, comm, "auto");
    take_steps(&shared, HALF, false, &second);
    snapshot_assert_same(&first.end, &second.start);
    snapshot_assert_close(&one.start, &one.end, &second.end, 1e-4, "resumed");
    if (tr_comm_rank(comm) == 0) { // on one rank
        write_run(text, 2, 1, path, "");
        run_options options = options_of(text, &data, NULL, "auto");
        take_steps(&options, HALF, false, &alone);
        snapshot_assert_same(&first.end, &alone.start);
        snapshot_assert_close(&one.start, &one.end, &alone.end, 1e-4, "on one rank");
        free_outcome(&alone);
    }
    trial_ok(tr__comm_barrier(comm, &err), &err); // rank 0 removes what it shares
    free_outcome(&one);
    free_outcome(&first);
    free_outcome(&second);
    samples_free(&data);
}

static void what_is_split_takes_its_share(void **state) {
    samples data;
    char text[TEXT_MAX];
    trial t;
    int64_t split = 0, whole = 0;
    (void)state;
    samples_tokens(&data, BATCH, 8, 31, 5);
    write_run(text, 2, 2, "unused", "");
    run_options options = options_of(text, &data, comm, "never");
    trial_open(&t, &options);
    for (size_t i = 0; i < t.plan->param_count; i++) {
        const tr_plan_param *param = &t.plan->params[i];
        int64_t stored = tr_shape_count(param->stored_shape);
        bool is_split = t.plan->flats[param->flat].split;
        assert_int_equal(param->count, is_split ? stored / 2 : stored);
        split += is_split ? stored : 0;
        whole += stored;
    }
    // Of a block all but norms and the biases behind sums.
    assert_int_equal(split, 2 * (12 * 32 * 32 + 3 * 32 + 4 * 32));
    assert_int_equal(whole, tr_plan_parameters(t.plan));
    trial_close(&t);
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_split_takes_its_share),
        cmocka_unit_test(layers_are_shared),
        cmocka_unit_test_setup_teardown(files_do_not_know_the_mesh, scratch_make,
                                        scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
