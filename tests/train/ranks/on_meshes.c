#include "on_meshes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

tr_comm *world;
const char *schedule = "";

const char gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, "
    "\"n_positions\": 8, \"vocab_size\": 67}";
// Fewer heads of keys than of queries, and norms of heads.
#define HEADS                                                                          \
    "\"hidden_size\": 32, \"intermediate_size\": 43, \"num_hidden_layers\": 2, "       \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, "                         \
    "\"max_position_embeddings\": 8, \"vocab_size\": 67"
const char llama[] = "{\"model_type\": \"llama\", \"attention_bias\": true, " HEADS "}";
const char qwen3[] =
    "{\"model_type\": \"qwen3\", \"head_dim\": 8, \"tie_word_embeddings\": true, " HEADS
    "}";

const char bert[] =
    "{\"model_type\": \"bert\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"intermediate_size\": 43, \"vocab_size\": 67, "
    "\"max_position_embeddings\": 8}";

const tr_mesh meshes[MESHES] = {
    {.size = {1, 2, 1}}, {.size = {1, 1, 2}}, {.size = {1, 4, 1}}, {.size = {2, 2, 1}},
    {.size = {1, 1, 4}}, {.size = {2, 1, 2}}, {.size = {1, 2, 2}}, {.size = {2, 2, 2}}};

bool is_of_all(const tr_mesh *mesh) {
    return tr_mesh_ranks(mesh) == tr_comm_ranks(world);
}

// `tensor`: more keys of tensor_parallel.
void write_run_with(char text[TEXT_MAX], const char *model, int micro,
                    const tr_mesh *mesh, const char *tensor, const char *out,
                    const char *more, const char *cut) {
    int used = snprintf(
        text, TEXT_MAX,
        "{\"model\": %s, \"steps\": 9, \"data\": {\"order\": \"sequential\"}, "
        "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
        "\"tensor_parallel\": {\"size\": %d%s}, \"pipeline\": {\"stages\": %d%s}, "
        "\"out\": \"%s\"%s%s}",
        model, BATCH, micro, (int)mesh->size[TR_AXIS_TENSOR], tensor,
        (int)mesh->size[TR_AXIS_PIPELINE], schedule, out, more, cut);
    assert_true(used > 0 && used < TEXT_MAX);
}

void write_run_of(char text[TEXT_MAX], const char *model, int micro,
                  const tr_mesh *mesh, const char *out, const char *more,
                  const char *cut) {
    write_run_with(text, model, micro, mesh, "", out, more, cut);
}

void write_run(char text[TEXT_MAX], const tr_mesh *mesh, const char *out) {
    write_run_of(text, gpt2, 2, mesh, out, ADAM, ONE_THREAD);
}

const tr_mesh alone = {.size = {1, 1, 1}};

run_options options_of(const char *text, const samples *data, tr_comm *ranks,
                       const char *resume) {
    return (run_options){.text = text,
                         .own_train = data->dataset,
                         .own_validation = data->dataset,
                         .comm = ranks,
                         .resume = resume};
}

// The shares in which stages wait are, in the mean, what all ranks have told: the step
// lasts until the last of them has its gradients.
static void check_waits(const trial *t, const tr_step_result *result) {
    int64_t stages = t->plan->request.mesh.size[TR_AXIS_PIPELINE];
    double most = result->rank_seconds.most, sum = 0;
    double waited = result->rank_wait_seconds.mean + most - result->rank_seconds.mean;
    for (int64_t s = 0; s < stages; s++) {
        double share = tr__executor_stage_wait(t->engine->executor, s);
        assert_true(share >= 0 && share <= 1);
        sum += share;
    }
    assert_true(fabs(sum / (double)stages * most - waited) <= 1e-9 * most);
}

// Each rank sends what its plan says, on all axes.
static void take_step(trial *t, tr_step_result *result) {
    tr_comm_totals before = {0}, after = {0};
    before = t->engine->comm ? tr__comm_totals(t->engine->comm) : before;
    trial_steps(t, 1, result);
    after = t->engine->comm ? tr__comm_totals(t->engine->comm) : after;
    assert_int_equal(after.gather_bytes - before.gather_bytes, t->plan->traffic.gather);
    assert_int_equal(after.reduce_bytes - before.reduce_bytes, t->plan->traffic.reduce);
    check_waits(t, result);
}

void take_steps(const run_options *options, int64_t steps, bool saves, outcome *o) {
    tr_error err = {0};
    trial t;
    trial_open(&t, options);
    snapshot_gather(&o->start, &t);
    for (int i = 0; i < steps; i++) {
        tr_step_result result;
        take_step(&t, &result);
        o->loss[i] = result.loss;
    }
    trial_check_arenas(&t);
    o->evaluation = (tr_evaluation)TR_EVALUATION_INIT;
    trial_ok(tr_engine_evaluate(t.engine, 0, &o->evaluation, &err), &err);
    snapshot_gather(&o->end, &t);
    if (saves) {
        trial_ok(tr_engine_save(t.engine, &err), &err);
    }
    trial_close(&t);
}

void take_run(const char *text, const samples *data, tr_comm *ranks, const char *resume,
              int64_t steps, bool saves, outcome *o) {
    const run_options options = options_of(text, data, ranks, resume);
    take_steps(&options, steps, saves, o);
}

void free_outcome(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->end);
}

void assert_near(const outcome *one, const outcome *many, const char *what) {
    snapshot_assert_same(&one->start, &many->start);
    for (int i = 0; i < STEPS; i++) {
        if (!(many->loss[i] - one->loss[i] < 1e-5 &&
              one->loss[i] - many->loss[i] < 1e-5)) {
            fail_msg("%s: loss %g of step %d, and %g on one rank", what, many->loss[i],
                     i + 1, one->loss[i]);
        }
    }
    assert_int_equal(many->evaluation.samples, one->evaluation.samples);
    assert_true(many->evaluation.loss - one->evaluation.loss < 1e-4 &&
                one->evaluation.loss - many->evaluation.loss < 1e-4);
    snapshot_assert_close(&one->start, &one->end, &many->end, 1e-4, what);
}

void assert_goes_on(const char *one, const char *many, const char *last,
                    const samples *data) {
    enum { HALF = STEPS / 2 };
    outcome alone_all, first, end;
    tr_error err = {0};
    take_run(one, data, NULL, "never", STEPS, false, &alone_all);
    take_run(many, data, world, "never", HALF, true, &first);
    if (tr_comm_rank(world) == 0) {
        take_run(last, data, NULL, "auto", HALF, false, &end);
        snapshot_assert_same(&first.end, &end.start);
        snapshot_assert_close(&alone_all.start, &alone_all.end, &end.end, 1e-4, last);
        free_outcome(&end);
    }
    trial_ok(tr__comm_barrier(world, &err), &err);
    free_outcome(&first);
    free_outcome(&alone_all);
}
