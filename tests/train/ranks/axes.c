// Run on two, four or eight ranks: GPT-2, Llama, Qwen3 and BERT, of which ranks of the
// tensor axis share the work of layers, and ranks of the pipeline axis have other
// layers, against one rank. Weights, moments and losses are the same but for rounding,
// with dropout, at every stage of ZeRO, recomputed, on NVMe, in micro-batches of other
// sizes. A checkpoint is that of one rank's in names
// and shapes, and goes on with any mesh. Of two ranks of the tensor axis each keeps
// half of what is split, and a stage keeps what its own units use.
#include "base/hash.h"
#include "exec/walk.h"
#include "on_meshes.h"
#include "on_ranks.h"
#include "train/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 512 };

// Of tensors of which ranks have parts, norms are those of the whole. (The key bias of
// GPT-2 is noise that LAMB would enlarge.)
#define LAMB                                                                           \
    ", \"optimizer\": {\"type\": \"Lamb\", \"params\": {\"lr\": 0.01, "                \
    "\"eps\": 1e-6, \"weight_decay\": 0.1, \"exclude_1d\": true}, \"groups\": "        \
    "[{\"match\": \"*.bias\", \"weight_decay\": 0}]}"
#define LARS                                                                           \
    ", \"optimizer\": {\"type\": \"LARS\", \"params\": {\"lr\": 2, "                   \
    "\"weight_decay\": 0.01}}"

// Matrices are updated as wholes, whichever ranks have parts of them.
#define MUON                                                                           \
    ", \"optimizer\": {\"type\": \"Muon\", \"params\": {\"lr\": 0.02, "                \
    "\"eps\": 1e-6, \"weight_decay\": 0.1, \"ns_dtype\": \"f32\"}}"

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
    run_options options = options_of(text, data, world, "never");
    take_steps(&options, STEPS, false, &many);
    assert_near(one, &many, what);
    free_outcome(&many);
}

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
        {gpt2, LAMB, 2, ZERO(2), false},
        {llama, LAMB, 4, ONE_THREAD, true},
        {qwen3, LARS, 2, OFFLOADED_ADAM, false},
        {llama, LARS, 2, ZERO(3) RECOMPUTED, false},
        {gpt2, MUON, 2, ONE_THREAD, false},
        {llama, MUON, 3, ZERO(2), true},
        {qwen3, MUON, 2, ZERO(3) RECOMPUTED, false},
        {llama, MUON, 2, OFFLOADED_ADAM, false},
        {gpt2, ADAM, 2, NVME_ADAM, false},
        {qwen3, ADAM, 4, NVME_ADAM, true},
        {llama, ADAM, 1, ALL_ON_NVME, true},
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

// Gradients of parameters that ranks sum are made later, or held until then.
static void weights_that_come_later_are_summed(void **state) {
    static const way ways[] = {{gpt2, ADAM, 2, ONE_THREAD, true},
                               {qwen3, ADAM, 1, ZERO(1), true}};
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 4, 2, 2}};
    samples tokens;
    (void)state;
    samples_tokens(&tokens, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && is_of_all(&mesh); i++) {
        char text[TEXT_MAX];
        outcome one;
        write_run_of(text, ways[i].model, 2, &alone, "unused", ADAM, ONE_THREAD);
        run_options options = options_of(text, &tokens, NULL, "never");
        take_steps(&options, STEPS, false, &one);
        schedule = ", \"schedule\": \"zero_bubble\"";
        try_mesh(&ways[i], &mesh, &tokens, &one);
        schedule = "";
        free_outcome(&one);
    }
    samples_free(&tokens);
}

// What ranks sum is summed in the same order, and norms are of rows: so the forward has
// the same bits whether tokens are cut or not, dropout included.
static void cut_tokens_change_no_bit_of_the_forward(void **state) {
    static const char *const models[] = {gpt2, llama, qwen3};
    static const char *const sequence[] = {"", ", \"sequence\": true"};
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 2, 2, 1}};
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
            run_options options = options_of(text, &data, world, "never");
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
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 2, 2, 1}};
    samples data;
    tr_error err = {0};
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char text[TEXT_MAX];
        uint64_t all[RANKS_MOST];
        trial t;
        write_run_with(text, models[i], 1, &mesh, ", \"sequence\": true", "unused",
                       ADAM, ZERO(1));
        run_options options = options_of(text, &data, world, "never");
        trial_open(&t, &options);
        uint64_t before = hash_whole(&t);
        trial_steps(&t, STEPS, NULL);
        uint64_t own = hash_whole(&t);
        assert_true(own != before);
        trial_ok(tr__comm_all_gather(world, &own, sizeof own, all, &err), &err);
        assert_true(all[tr_comm_rank(world) / 2 * 2] ==
                    all[tr_comm_rank(world) / 2 * 2 + 1]);
        trial_close(&t);
    }
    samples_free(&data);
}

// A folder of rank 0's, the same on all ranks.
static void shared_path(void *const *state, const char *name, char path[PATH_BYTES]) {
    tr_error err = {0};
    snprintf(path, PATH_BYTES, "%s", scratch_path(state, name));
    trial_ok(tr__comm_broadcast(world, 0, path, PATH_BYTES, &err), &err);
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
static void go_on_elsewhere(void **state, const char *optimizer) {
    enum { HALF = STEPS / 2 };
    samples data;
    char text[TEXT_MAX], path[PATH_BYTES], alone_path[PATH_BYTES];
    outcome one, first, second;
    tr_error err = {0};
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    shared_path(state, "out", path);
    snprintf(alone_path, sizeof alone_path, "%s", scratch_path(state, "alone"));
    write_run_of(text, gpt2, 2, &alone, alone_path, optimizer, ONE_THREAD);
    run_options options = options_of(text, &data, NULL, "never");
    take_steps(&options, STEPS, false, &one);
    write_run_of(text, gpt2, 2, some_mesh(true), path, optimizer, ONE_THREAD);
    options = options_of(text, &data, world, "never");
    take_steps(&options, HALF, true, &first);
    write_run_of(text, gpt2, 2, some_mesh(false), path, optimizer, ONE_THREAD);
    options = options_of(text, &data, world, "auto");
    take_steps(&options, HALF, false, &second);
    snapshot_assert_same(&first.end, &second.start);
    snapshot_assert_close(&one.start, &one.end, &second.end, 1e-4, "resumed");
    if (tr_comm_rank(world) == 0) {
        outcome last;
        write_run_of(text, gpt2, 2, &alone, path, optimizer, ONE_THREAD);
        options = options_of(text, &data, NULL, "auto");
        take_steps(&options, HALF, false, &last);
        snapshot_assert_same(&first.end, &last.start);
        snapshot_assert_close(&one.start, &one.end, &last.end, 1e-4, "on one rank");
        free_outcome(&last);
    }
    trial_ok(tr__comm_barrier(world, &err), &err); // rank 0 removes what it shares
    free_outcome(&one);
    free_outcome(&first);
    free_outcome(&second);
    samples_free(&data);
}

static void files_do_not_know_the_mesh(void **state) {
    go_on_elsewhere(state, ADAM);
}

static void momenta_of_matrices_neither(void **state) {
    go_on_elsewhere(state, MUON);
}

// The loss of a step behind a write to the first block, whose values lie in 16 bits,
// too.
static double loss_behind_write(const tr_mesh *mesh, tr_comm *ranks,
                                const samples *data) {
    enum { ELEMENTS = 32 * 128 };
    static const char name[] = "transformer.h.0.mlp.c_fc.weight";
    float values[ELEMENTS];
    char text[TEXT_MAX];
    tr_step_result result;
    tr_error err = {0};
    trial t;
    write_run_of(text, gpt2, 2, mesh, "unused", ", \"bf16\": {\"enabled\": true}",
                 ONE_THREAD);
    run_options options = options_of(text, data, ranks, "never");
    trial_open(&t, &options);
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = (float)(i % 31 - 15) / 8;
    }
    trial_ok(tr_engine_write(t.engine, name, "values", 0, ELEMENTS, values, &err),
             &err);
    trial_steps(&t, 1, &result);
    trial_close(&t);
    return result.loss;
}

// Ranks of other stages, which have nothing of it, let what they have be.
static void what_is_written_is_used_on_every_mesh(void **state) {
    samples data;
    (void)state;
    samples_tokens(&data, BATCH, 8, TOKENS, 6);
    double loss = loss_behind_write(&alone, NULL, &data);
    for (size_t m = 0; m < MESHES; m++) {
        if (is_of_all(&meshes[m])) {
            double its = loss_behind_write(&meshes[m], world, &data);
            if (!(its - loss < 1e-3 && loss - its < 1e-3)) {
                fail_msg("mesh %zu: a loss of %g, and %g on one rank", m, its, loss);
            }
        }
    }
    samples_free(&data);
}

static void open_on(trial *t, const tr_mesh *mesh, const samples *data) {
    char text[TEXT_MAX];
    write_run(text, mesh, "unused");
    run_options options = options_of(text, data, world, "never");
    trial_open(t, &options);
}

static void what_is_split_takes_its_share(void **state) {
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 2, 2, 1}};
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
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 2, 1, 2}};
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
        cmocka_unit_test(what_is_written_is_used_on_every_mesh),
        cmocka_unit_test(a_stage_has_what_its_units_use),
        cmocka_unit_test(cut_tokens_change_no_bit_of_the_forward),
        cmocka_unit_test(whole_tensors_stay_the_same_on_all_ranks),
        cmocka_unit_test(layers_are_shared),
        cmocka_unit_test(weights_that_come_later_are_summed),
        cmocka_unit_test_setup_teardown(files_do_not_know_the_mesh, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(momenta_of_matrices_neither, scratch_make,
                                        scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}
