// Run on two, four or eight ranks: GPT-2, Llama, Qwen3 and BERT, of which ranks of the
// tensor axis share the work of layers, and ranks of the pipeline axis have other
// layers, against one rank. Weights, moments and losses are the same but for rounding,
// with dropout, at every stage of ZeRO, recomputed, in micro-batches of other sizes; in
// reproducible mode stages change no bit. A checkpoint is that of one rank's in names
// and shapes, and goes on with any mesh. Of two ranks of the tensor axis each keeps
// half of what is split, and a stage keeps what its own units use.
#include "base/hash.h"
#include "comm/comm.h"
#include "comm/mesh.h"
#include "exec/walk.h"
#include "on_ranks.h"
#include "train/samples.h"
#include "train/scratch.h"
#include "train/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Neither the vocabulary nor the width of Llama's MLP is a multiple of tensor ranks.
enum { STEPS = 4, BATCH = 8, TOKENS = 67, TEXT_MAX = 2048, PATH_BYTES = 512 };

static tr_comm *comm;

static const char gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, "
    "\"n_positions\": 8, \"vocab_size\": 67}";
// Fewer heads of keys than of queries, and norms of heads.
#define HEADS                                                                          \
    "\"hidden_size\": 32, \"intermediate_size\": 43, \"num_hidden_layers\": 2, "       \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, "                         \
    "\"max_position_embeddings\": 8, \"vocab_size\": 67"
static const char llama[] =
    "{\"model_type\": \"llama\", \"attention_bias\": true, " HEADS "}";
static const char qwen3[] =
    "{\"model_type\": \"qwen3\", \"head_dim\": 8, \"tie_word_embeddings\": true, " HEADS
    "}";

static const char bert[] =
    "{\"model_type\": \"bert\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"intermediate_size\": 43, \"vocab_size\": 67, "
    "\"max_position_embeddings\": 8}";
#define MASKED ", \"task\": \"masked_lm\""

// data, tensor, pipeline
static const tr_mesh meshes[] = {
    {.size = {1, 2, 1}}, {.size = {1, 1, 2}}, {.size = {1, 4, 1}}, {.size = {2, 2, 1}},
    {.size = {1, 1, 4}}, {.size = {2, 1, 2}}, {.size = {1, 2, 2}}, {.size = {2, 2, 2}}};
enum { MESHES = sizeof meshes / sizeof *meshes };

static bool is_of_all(const tr_mesh *mesh) {
    return tr_mesh_ranks(mesh) == tr_comm_ranks(comm);
}

// `tensor`: more keys of tensor_parallel.
static void write_run_with(char text[TEXT_MAX], const char *model, int micro,
                           const tr_mesh *mesh, const char *tensor, const char *out,
                           const char *more, const char *cut) {
    int used = snprintf(
        text, TEXT_MAX,
        "{\"model\": %s, \"steps\": 9, \"data\": {\"order\": \"sequential\"}, "
        "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
        "\"tensor_parallel\": {\"size\": %d%s}, \"pipeline\": {\"stages\": %d}, "
        "\"out\": \"%s\"%s%s}",
        model, BATCH, micro, (int)mesh->size[TR_AXIS_TENSOR], tensor,
        (int)mesh->size[TR_AXIS_PIPELINE], out, more, cut);
    assert_true(used > 0 && used < TEXT_MAX);
}

static void write_run_of(char text[TEXT_MAX], const char *model, int micro,
                         const tr_mesh *mesh, const char *out, const char *more,
                         const char *cut) {
    write_run_with(text, model, micro, mesh, "", out, more, cut);
}

#define ADAM       ", \"optimizer\": {\"params\": {\"lr\": 0.01, \"eps\": 1e-6}}"
#define ONE_THREAD ", \"execution\": {\"threads\": 1}"

static void write_run(char text[TEXT_MAX], const tr_mesh *mesh, const char *out) {
    write_run_of(text, gpt2, 2, mesh, out, ADAM, ONE_THREAD);
}

static const tr_mesh alone = {.size = {1, 1, 1}};

typedef struct outcome {
    snapshot start, end;
    double loss[STEPS];
    tr_evaluation evaluation;
} outcome;

static run_options options_of(const char *text, const samples *data, tr_comm *ranks,
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

static void take_steps(const run_options *options, int64_t steps, bool saves,
                       outcome *o) {
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

static void free_outcome(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->end);
}

static void assert_near(const outcome *one, const outcome *many, const char *what) {
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

// A model, what else the run has, and how the batch is cut.
typedef struct way {
    const char *model, *more;
    int micro;
    const char *cut;
    bool sequence; // what lies between layers is cut, too
} way;

static void try_mesh(const way *at, const tr_mesh *mesh, const samples *data,
                     const outcome *one) {
    char text[TEXT_MAX], what[TEXT_MAX];
    outcome many;
    snprintf(what, sizeof what, "%s%s in micro-batches of %d%s%s on %d x %d x %d ranks",
             at->model, at->more, at->micro, at->cut,
             at->sequence ? ", tokens cut" : "", (int)mesh->size[TR_AXIS_DATA],
             (int)mesh->size[TR_AXIS_TENSOR], (int)mesh->size[TR_AXIS_PIPELINE]);
    write_run_with(text, at->model, at->micro, mesh,
                   at->sequence ? ", \"sequence\": true" : "", "unused", at->more,
                   at->cut);
    run_options options = options_of(text, data, comm, "never");
    take_steps(&options, STEPS, false, &many);
    assert_near(one, &many, what);
    free_outcome(&many);
}

#define ZERO(stage) ONE_THREAD ", \"zero_optimization\": {\"stage\": " #stage "}"
#define OFFLOADED_ADAM                                                                 \
    ONE_THREAD ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "       \
               "{\"device\": \"cpu\"}}"
#define RECOMPUTED ", \"activation_checkpointing\": {\"number_checkpoints\": 2}"

static void layers_are_shared(void **state) {
    static const way ways[] = {
        {gpt2, ADAM, 2, ONE_THREAD, false},
        {llama, ADAM, 2, ZERO(3), false},
        {qwen3, ADAM, 4, ZERO(1), false},
        {qwen3, ADAM, 1, ONE_THREAD RECOMPUTED, false},
        {gpt2, ADAM, 4, ZERO(3), false},
        {gpt2, ADAM, 1, ZERO(2) RECOMPUTED, false},
        {gpt2, ADAM, 3, ZERO(1), false},
        {gpt2, ADAM, 1, ", \"execution\": {\"threads\": 1, \"wave\": 2}", false},
        {gpt2, ADAM ", \"freeze\": [\"*c_fc*\"]", 2, ONE_THREAD, false},
        {gpt2, ADAM, 2, ONE_THREAD, true},
        {gpt2, ADAM, 3, ZERO(2) RECOMPUTED, true},
        {gpt2, ADAM, 1, ZERO(1), true},
        {llama, ADAM, 4, ZERO(3), true},
        {qwen3, ADAM, 2, ONE_THREAD RECOMPUTED, true},
        {gpt2, ADAM ", \"freeze\": [\"*ln_1*\"]", 2, OFFLOADED_ADAM, true},
        {bert, ADAM MASKED, 2, ZERO(2), true},
    };
    samples tokens, masked;
    (void)state;
    samples_tokens(&tokens, STEPS * BATCH, 8, TOKENS, 6);
    samples_masked(&masked, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const samples *data = ways[i].model == bert ? &masked : &tokens;
        char text[TEXT_MAX];
        outcome one;
        write_run_of(text, ways[i].model, 2, &alone, "unused", ways[i].more,
                     ONE_THREAD);
        run_options options = options_of(text, data, NULL, "never");
        take_steps(&options, STEPS, false, &one);
        for (size_t m = 0; m < MESHES; m++) {
            if (is_of_all(&meshes[m])) {
                try_mesh(&ways[i], &meshes[m], data, &one);
            }
        }
        free_outcome(&one);
    }
    samples_free(&tokens);
    samples_free(&masked);
}

// What ranks sum is summed in the same order, and norms are of rows: so the forward has
// the same bits whether tokens are cut or not, dropout included.
static void cut_tokens_change_no_bit_of_the_forward(void **state) {
    static const char *const models[] = {gpt2, llama, qwen3};
    static const char *const sequence[] = {"", ", \"sequence\": true"};
    const tr_mesh mesh = {.size = {tr_comm_ranks(comm) / 2, 2, 1}};
    samples data;
    (void)state;
    samples_tokens(&data, BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double loss[2];
        for (int s = 0; s < 2; s++) {
            char text[TEXT_MAX];
            outcome o;
            write_run_with(text, models[i], 1, &mesh, sequence[s], "unused", ADAM,
                           ONE_THREAD);
            run_options options = options_of(text, &data, comm, "never");
            take_steps(&options, 1, false, &o);
            loss[s] = o.loss[0];
            free_outcome(&o);
        }
        assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    }
    samples_free(&data);
}

// What every tensor rank has as a whole, and all have updated for themselves: norms,
// biases behind sums, positions; with its states.
static uint64_t hash_whole(const trial *t) {
    uint64_t hash = 1;
    for (size_t f = 0; f < t->plan->flat_count; f++) {
        const tr_flat *flat = &t->plan->flats[f];
        const tr_flat_range *kept[] = {&flat->master, &flat->state[0], &flat->state[1]};
        for (int i = 0; i < 3 && !flat->split && flat->count > 0; i++) {
            const void *bytes = tr__memory(t->engine->executor, kept[i]->buffer);
            hash = tr__hash_more(hash, bytes, (size_t)kept[i]->count * sizeof(float));
        }
    }
    return hash;
}

static void whole_tensors_stay_the_same_on_all_ranks(void **state) {
    enum { RANKS_MOST = 8 };
    static const char *const models[] = {gpt2, llama, qwen3};
    const tr_mesh mesh = {.size = {tr_comm_ranks(comm) / 2, 2, 1}};
    samples data;
    tr_error err = {0};
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char text[TEXT_MAX];
        uint64_t all[RANKS_MOST];
        tr_step_result result;
        trial t;
        write_run_with(text, models[i], 1, &mesh, ", \"sequence\": true", "unused",
                       ADAM, ZERO(1));
        run_options options = options_of(text, &data, comm, "never");
        trial_open(&t, &options);
        uint64_t before = hash_whole(&t);
        trial_steps(&t, STEPS, &result);
        uint64_t own = hash_whole(&t);
        assert_true(own != before);
        trial_ok(tr__comm_all_gather(comm, &own, sizeof own, all, &err), &err);
        assert_true(all[tr_comm_rank(comm) / 2 * 2] ==
                    all[tr_comm_rank(comm) / 2 * 2 + 1]);
        trial_close(&t);
    }
    samples_free(&data);
}

#define OPTIMIZER(type)                                                                \
    ", \"optimizer\": {\"type\": \"" type                                              \
    "\", \"params\": {\"lr\": 0.003, \"eps\": 1e-6}}"
#define OFFLOADED                                                                      \
    ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": "     \
    "\"cpu\"}}"

static void stages_change_no_bit(void **state) {
    static const char reproducible[] =
        ", \"execution\": {\"threads\": 1, \"reproducible\": true}";
    static const struct {
        const char *model, *more;
    } runs[] = {{gpt2, ADAM},
                {gpt2, OPTIMIZER("Lamb")},
                {qwen3, OPTIMIZER("Muon")},
                {qwen3, ADAM OFFLOADED}};
    samples data;
    char text[TEXT_MAX];
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        outcome one, many;
        write_run_of(text, runs[i].model, 2, &alone, "unused", runs[i].more,
                     reproducible);
        run_options options = options_of(text, &data, NULL, "never");
        take_steps(&options, STEPS, false, &one);
        for (size_t m = 0; m < MESHES; m++) {
            if (!is_of_all(&meshes[m]) || meshes[m].size[TR_AXIS_TENSOR] > 1) {
                continue;
            }
            write_run_of(text, runs[i].model, 2, &meshes[m], "unused", runs[i].more,
                         reproducible);
            options = options_of(text, &data, comm, "never");
            take_steps(&options, STEPS, false, &many);
            assert_memory_equal(one.loss, many.loss, sizeof one.loss);
            snapshot_assert_same(&one.end, &many.end);
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

// The meshes of all ranks: the first of them, the last.
static const tr_mesh *some_mesh(bool last) {
    const tr_mesh *found = NULL;
    for (size_t m = 0; m < MESHES; m++) {
        found = is_of_all(&meshes[m]) && (last || !found) ? &meshes[m] : found;
    }
    assert_non_null(found);
    return found;
}

// Two steps on one mesh, two on another one, or on one rank.
static void files_do_not_know_the_mesh(void **state) {
    enum { HALF = STEPS / 2 };
    samples data;
    char text[TEXT_MAX], path[PATH_BYTES], alone_path[PATH_BYTES];
    outcome one, first, second;
    tr_error err = {0};
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    shared_path(state, "out", path);
    snprintf(alone_path, sizeof alone_path, "%s", scratch_path(state, "alone"));
    write_run(text, &alone, alone_path);
    run_options options = options_of(text, &data, NULL, "never");
    take_steps(&options, STEPS, false, &one);
    write_run(text, some_mesh(true), path);
    options = options_of(text, &data, comm, "never");
    take_steps(&options, HALF, true, &first);
    write_run(text, some_mesh(false), path);
    options = options_of(text, &data, comm, "auto");
    take_steps(&options, HALF, false, &second);
    snapshot_assert_same(&first.end, &second.start);
    snapshot_assert_close(&one.start, &one.end, &second.end, 1e-4, "resumed");
    if (tr_comm_rank(comm) == 0) {
        outcome last;
        write_run(text, &alone, path);
        options = options_of(text, &data, NULL, "auto");
        take_steps(&options, HALF, false, &last);
        snapshot_assert_same(&first.end, &last.start);
        snapshot_assert_close(&one.start, &one.end, &last.end, 1e-4, "on one rank");
        free_outcome(&last);
    }
    trial_ok(tr__comm_barrier(comm, &err), &err); // rank 0 removes what it shares
    free_outcome(&one);
    free_outcome(&first);
    free_outcome(&second);
    samples_free(&data);
}

static void open_on(trial *t, const tr_mesh *mesh, const samples *data) {
    char text[TEXT_MAX];
    write_run(text, mesh, "unused");
    run_options options = options_of(text, data, comm, "never");
    trial_open(t, &options);
}

static void what_is_split_takes_its_share(void **state) {
    const tr_mesh mesh = {.size = {tr_comm_ranks(comm) / 2, 2, 1}};
    samples data;
    trial t;
    int64_t split = 0, whole = 0;
    (void)state;
    samples_tokens(&data, BATCH, 8, TOKENS, 6);
    open_on(&t, &mesh, &data);
    for (size_t i = 0; i < t.plan->param_count; i++) {
        const tr_plan_param *param = &t.plan->params[i];
        int64_t stored = tr_shape_count(param->stored_shape);
        bool is_split = t.plan->flats[param->flat].split;
        int64_t row = param->shape.dim[1]; // of what cannot be halved
        int64_t least = is_split ? (stored - row) / 2 : stored;
        assert_in_range(param->count, least, is_split ? (stored + row) / 2 : stored);
        split += is_split ? stored : 0;
        whole += stored;
    }
    // Of a block all but norms and the biases behind sums; the embeddings of tokens.
    assert_int_equal(split, 2 * (12 * 32 * 32 + 3 * 32 + 4 * 32) + TOKENS * 32);
    assert_int_equal(whole, tr_plan_parameters(t.plan));
    trial_close(&t);
    samples_free(&data);
}

// The embeddings of tokens are there on both, since the head uses them, too.
static void a_stage_has_what_its_units_use(void **state) {
    const tr_mesh mesh = {.size = {tr_comm_ranks(comm) / 2, 1, 2}};
    samples data;
    trial t;
    (void)state;
    samples_tokens(&data, BATCH, 8, TOKENS, 6);
    open_on(&t, &mesh, &data);
    int64_t block = 12 * 32 * 32 + 13 * 32, tokens = TOKENS * 32;
    bool first = t.plan->request.mesh.at[TR_AXIS_PIPELINE] == 0;
    int64_t most = tokens + block + (first ? 8 * 32 : 2 * 32);
    int64_t bytes = tr_plan_ledger(t.plan)->bytes[TR_SPACE_DEVICE][TR_LEDGER_optimizer];
    assert_in_range(bytes, 2 * sizeof(float) * (size_t)most,
                    2 * sizeof(float) * (size_t)most + 1024);
    // What another stage needs has to be there, too.
    tr_error err = {0};
    tr_stage_figures *other = &t.plan->stages[first];
    assert_int_equal(t.plan->stages[!first].bytes[TR_SPACE_DEVICE],
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    assert_int_equal(tr__run_fits(t.run, t.plan, &err), TR_OK);
    other->bytes[TR_SPACE_DEVICE] = INT64_MAX / 4;
    assert_int_equal(tr__run_fits(t.run, t.plan, &err), TR_BUDGET);
    trial_close(&t);
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_split_takes_its_share),
        cmocka_unit_test(a_stage_has_what_its_units_use),
        cmocka_unit_test(cut_tokens_change_no_bit_of_the_forward),
        cmocka_unit_test(whole_tensors_stay_the_same_on_all_ranks),
        cmocka_unit_test(layers_are_shared),
        cmocka_unit_test(stages_change_no_bit),
        cmocka_unit_test_setup_teardown(files_do_not_know_the_mesh, scratch_make,
                                        scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
