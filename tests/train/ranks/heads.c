// Run on two, four or eight ranks: Llama and Qwen3 with fewer heads of keys than there
// are ranks on the tensor axis, against one rank. Losses, weights, moments and norms of
// gradients are the same but for rounding, at every stage of ZeRO, beside stages of a
// pipeline, with tokens cut, recomputed, frozen in part and offloaded. Ranks that have
// a head alike keep it so, bit for bit. A checkpoint goes on with any mesh. A model of
// the program's own may have products of queries, keys and values apart, and join them,
// or one tensor of all three.
#include "base/hash.h"
#include "exec/walk.h"
#include "on_meshes.h"
#include "on_ranks.h"
#include "train/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 512, OF = 7 };

#define SHAPE                                                                          \
    "\"hidden_size\": 32, \"intermediate_size\": 43, \"num_hidden_layers\": 2, "       \
    "\"num_attention_heads\": 8, \"max_position_embeddings\": 8, \"vocab_size\": 67"
static const char two[] = "{\"model_type\": \"llama\", \"attention_bias\": true, "
                          "\"num_key_value_heads\": 2, " SHAPE "}";
static const char one[] = "{\"model_type\": \"qwen3\", \"head_dim\": 8, "
                          "\"tie_word_embeddings\": true, \"num_key_value_heads\": 1, "
                          "\"attention_dropout\": 0.1, " SHAPE "}";

// Were gradients counted twice, the norm would be another, and so the step.
#define CLIPPED ", \"gradient_clipping\": 0.3"
#define LAMB                                                                           \
    ", \"optimizer\": {\"type\": \"Lamb\", \"params\": {\"lr\": 0.01, "                \
    "\"eps\": 1e-6, \"weight_decay\": 0.1}}"
#define MUON                                                                           \
    ", \"optimizer\": {\"type\": \"Muon\", \"params\": {\"lr\": 0.02, "                \
    "\"eps\": 1e-6, \"ns_dtype\": \"f32\"}}"
#define REPRODUCIBLE ", \"execution\": {\"threads\": 1, \"reproducible\": true}"

// Data, tensor, pipeline.
static const tr_mesh of[OF] = {
    {.size = {1, 2, 1}}, {.size = {1, 4, 1}}, {.size = {2, 2, 1}}, {.size = {1, 2, 2}},
    {.size = {2, 4, 1}}, {.size = {1, 4, 2}}, {.size = {1, 8, 1}}};

typedef struct way {
    const char *model, *more;
    int micro;
    const char *cut;
    bool sequence;
} way;

static const char *tensor_of(const way *at) {
    return at->sequence ? ", \"sequence\": true" : "";
}

// How many ranks of the tensor axis have one head of keys.
static int64_t repeats_of(const char *model, const tr_mesh *mesh) {
    int64_t keys = model == two ? 2 : 1, ranks = mesh->size[TR_AXIS_TENSOR];
    return ranks > keys ? ranks / keys : 1;
}

static void assert_near_of(double a, double b, const char *what) {
    if (!(fabs(a - b) <= 1e-4 * fabs(b))) {
        fail_msg("%s: a norm of %g, and %g on one rank", what, a, b);
    }
}

static double norm_of(const run_options *options, int64_t repeats) {
    tr_step_result result;
    trial t;
    trial_open(&t, options);
    if (options->comm) {
        assert_int_equal(t.plan->request.mesh.repeats, repeats);
    }
    trial_steps(&t, 1, &result);
    trial_close(&t);
    return result.grad_norm;
}

static void try_mesh(const way *at, const tr_mesh *mesh, const samples *data,
                     const outcome *alone_is, double norm) {
    char text[TEXT_MAX], what[TEXT_MAX];
    outcome many;
    snprintf(what, sizeof what, "%s%s in micro-batches of %d%s%s on %d x %d x %d ranks",
             at->model, at->more, at->micro, at->cut, tensor_of(at),
             (int)mesh->size[TR_AXIS_DATA], (int)mesh->size[TR_AXIS_TENSOR],
             (int)mesh->size[TR_AXIS_PIPELINE]);
    write_run_with(text, at->model, at->micro, mesh, tensor_of(at), "unused", at->more,
                   at->cut);
    run_options options = options_of(text, data, world, "never");
    assert_near_of(norm_of(&options, repeats_of(at->model, mesh)), norm, what);
    take_steps(&options, STEPS, false, &many);
    assert_near(alone_is, &many, what);
    free_outcome(&many);
}

static void ranks_share_a_head(void **state) {
    static const way ways[] = {
        {two, ADAM CLIPPED, 2, ONE_THREAD, false},
        {one, ADAM CLIPPED, 1, ZERO(1) RECOMPUTED, true},
        {two, ADAM CLIPPED, 4, ZERO(3), true},
        {one, ADAM CLIPPED, 3, ZERO(2), false},
        {two, ADAM CLIPPED ", \"freeze\": [\"*q_proj*\", \"*k_proj*\", \"*v_proj*\"]",
         2, ZERO(1) RECOMPUTED, false},
        {one, ADAM, 2, OFFLOADED_ADAM, true},
        {one, LAMB, 2, ZERO(2), true},
        {two, MUON, 2, ZERO(1), true},
        {one, MUON, 2, ONE_THREAD, false},
        {two, ADAM, 2, NVME_ADAM, false},
        {one, ADAM, 2, ALL_ON_NVME, true},
        {two, ADAM CLIPPED, 2, REPRODUCIBLE, false},
    };
    samples data;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char text[TEXT_MAX];
        outcome alone_is;
        write_run_of(text, ways[i].model, 2, &alone, "unused", ways[i].more,
                     ONE_THREAD);
        run_options options = options_of(text, &data, NULL, "never");
        double norm = norm_of(&options, 1);
        take_steps(&options, STEPS, false, &alone_is);
        for (size_t m = 0; m < OF; m++) {
            if (is_of_all(&of[m]) && repeats_of(ways[i].model, &of[m]) > 1) {
                try_mesh(&ways[i], &of[m], &data, &alone_is, norm);
            }
        }
        free_outcome(&alone_is);
    }
    samples_free(&data);
}

// ---- products apart

enum { HEADS = 4, KEYS = 2, DEPTH = 4, CONTEXT = 8, WIDE = HEADS * DEPTH };

static const tr_init drawn = {TR_INIT_UNIFORM, -0.3f, 0.3f};

static tr_value product(tr_graph *g, const char *name, tr_value x, int64_t out) {
    tr_value weight = tr_graph_param(g, name, TR_SHAPE2(out, WIDE), drawn);
    return tr_linear(g, TR_LINEAR_OUT_IN, x, weight, TR_NO_VALUE);
}

static void build_first(tr_graph *g, const void *config) {
    (void)config;
    tr_value table = tr_graph_param(g, "tokens", TR_SHAPE2(TOKENS, WIDE), drawn);
    tr_value ids = tr_graph_data(g, "input_ids");
    tr_graph_output(g, tr_embedding(g, ids, table, TR_NO_VALUE));
}

static tr_value products(tr_graph *g, tr_value x) {
    const tr_value parts[] = {product(g, "q", x, HEADS * DEPTH),
                              product(g, "k", x, KEYS * DEPTH),
                              product(g, "v", x, KEYS * DEPTH)};
    return tr_join_columns(g, parts, 3);
}

// config: NULL, or all of them are one product.
static void build_block(tr_graph *g, const void *config) {
    tr_value x = tr_graph_input(g, 0);
    tr_value qkv =
        config ? product(g, "qkv", x, (HEADS + 2 * KEYS) * DEPTH) : products(g, x);
    tr_value y = tr_grouped_attention(g, qkv, HEADS, KEYS, 0, 0);
    tr_graph_output(g, tr_residual(g, x, product(g, "o", y, WIDE), 0));
}

static void build_last(tr_graph *g, const void *config) {
    (void)config;
    tr_value weight = tr_graph_param(g, "classes", TR_SHAPE2(TOKENS, WIDE), drawn);
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, tr_graph_input(g, 0), weight,
                            TR_NO_VALUE, tr_graph_data(g, "labels"));
}

static const tr_model_unit units[2][3] = {
    {{"first", "first", "first.", build_first, NULL},
     {"block", "block", "block.", build_block, NULL},
     {"last", "last", "last.", build_last, NULL}},
    {{"first", "first", "first.", build_first, NULL},
     {"fused", "fused", "block.", build_block, "fused"},
     {"last", "last", "last.", build_last, NULL}}};

// Some heads of keys are on several ranks, and those of queries are not, so one tensor
// of both stays whole.
static void assert_fused(const run_options *options, int64_t tensor) {
    trial t;
    trial_open(&t, options);
    for (size_t p = 0; p < t.plan->param_count; p++) {
        const tr_plan_param *param = &t.plan->params[p];
        if (strcmp(param->stored, "block.qkv") == 0) {
            assert_int_equal(t.plan->flats[param->flat].split,
                             tensor > 1 && tensor <= KEYS);
        }
    }
    trial_close(&t);
}

static void take_own(bool fused, const tr_mesh *mesh, tr_comm *ranks, const char *cut,
                     const samples *data, outcome *o) {
    const tr_model own = {.size = sizeof own,
                          .type = "own",
                          .unit_count = sizeof units[0] / sizeof *units[0],
                          .units = units[fused],
                          .batch = tr_batch_tokens(CONTEXT),
                          .classes = TOKENS};
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"steps\": 9, \"data\": {\"order\": \"sequential\"}, "
             "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 2, "
             "\"tensor_parallel\": {\"size\": %d}, \"out\": \"unused\"%s%s}",
             BATCH, (int)mesh->size[TR_AXIS_TENSOR], CLIPPED, cut);
    run_options options = options_of(text, data, ranks, "never");
    options.own_model = &own;
    assert_fused(&options, mesh->size[TR_AXIS_TENSOR]);
    take_steps(&options, STEPS, false, o);
}

// Products of queries, keys and values apart, or one, whose blocks are not equal.
static void own_products_are_shared(void **state) {
    static const struct {
        bool fused;
        const char *optimizer;
    } cases[] = {{false, ADAM}, {true, ADAM}, {true, MUON}};
    samples data;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, CONTEXT, TOKENS, 6);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char cut[TEXT_MAX / 2];
        outcome alone_is, many;
        snprintf(cut, sizeof cut, "%s" ONE_THREAD, cases[c].optimizer);
        take_own(cases[c].fused, &alone, NULL, cut, &data, &alone_is);
        snprintf(cut, sizeof cut, "%s" ZERO(2), cases[c].optimizer);
        for (size_t m = 0; m < OF; m++) {
            const tr_mesh *mesh = &of[m];
            if (is_of_all(mesh) && mesh->size[TR_AXIS_PIPELINE] == 1 &&
                mesh->size[TR_AXIS_TENSOR] <= HEADS) {
                take_own(cases[c].fused, mesh, world, cut, &data, &many);
                assert_near(&alone_is, &many, cut);
                free_outcome(&many);
            }
        }
        free_outcome(&alone_is);
    }
    samples_free(&data);
}

// ---- copies, and files

// Heads that the rank has in common with others, with their states.
static uint64_t hash_heads(const trial *t) {
    uint64_t hash = 1;
    for (size_t f = 0; f < t->plan->flat_count; f++) {
        const tr_flat *flat = &t->plan->flats[f];
        const tr_flat_range *kept[] = {&flat->master, &flat->state[0], &flat->state[1]};
        for (int i = 0; i < 3 && flat->repeated && flat->count > 0; i++) {
            const void *bytes = tr__memory(t->engine->executor, kept[i]->buffer);
            hash = tr__hash_more(hash, bytes, (size_t)kept[i]->count * sizeof(float));
        }
    }
    return hash;
}

// The mesh of all ranks with most of them on the tensor axis.
static const tr_mesh *widest(void) {
    const tr_mesh *found = NULL;
    for (int m = 0; m < OF; m++) {
        bool wider = !found || of[m].size[TR_AXIS_TENSOR] > found->size[TR_AXIS_TENSOR];
        found = is_of_all(&of[m]) && wider ? &of[m] : found;
    }
    assert_non_null(found);
    return found;
}

static void copies_stay_the_same(void **state) {
    enum { RANKS_MOST = 8 };
    const tr_mesh *mesh = widest();
    uint64_t all[RANKS_MOST];
    char text[TEXT_MAX];
    samples data;
    tr_error err = {0};
    trial t;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    write_run_with(text, one, 1, mesh, "", "unused", ADAM CLIPPED, ONE_THREAD);
    run_options options = options_of(text, &data, world, "never");
    trial_open(&t, &options);
    uint64_t before = hash_heads(&t);
    trial_steps(&t, STEPS, NULL);
    uint64_t own = hash_heads(&t);
    assert_true(own != before && before != 1);
    trial_ok(tr__comm_all_gather(world, &own, sizeof own, all, &err), &err);
    int tensor = (int)mesh->size[TR_AXIS_TENSOR];
    assert_true(all[tr_comm_rank(world) / tensor * tensor] == own);
    trial_close(&t);
    samples_free(&data);
}

// Two steps on the widest mesh, two on one of fewer tensor ranks, and on one rank.
static void files_do_not_know_the_heads(void **state) {
    enum { HALF = STEPS / 2 };
    int64_t ranks = tr_comm_ranks(world);
    const tr_mesh other = {.size = {ranks > 2 ? ranks / 2 : 2, ranks > 2 ? 2 : 1, 1}};
    char text[TEXT_MAX], path[PATH_BYTES], alone_path[PATH_BYTES];
    samples data;
    outcome alone_is, first, second;
    tr_error err = {0};
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    snprintf(path, sizeof path, "%s", scratch_path(state, "out"));
    snprintf(alone_path, sizeof alone_path, "%s", scratch_path(state, "alone"));
    trial_ok(tr__comm_broadcast(world, 0, path, PATH_BYTES, &err), &err);
    write_run_of(text, one, 1, &alone, alone_path, ADAM CLIPPED, ONE_THREAD);
    run_options options = options_of(text, &data, NULL, "never");
    take_steps(&options, STEPS, false, &alone_is);
    write_run_of(text, one, 1, widest(), path, ADAM CLIPPED, ONE_THREAD);
    options = options_of(text, &data, world, "never");
    take_steps(&options, HALF, true, &first);
    write_run_of(text, one, 1, &other, path, ADAM CLIPPED, ZERO(1));
    options = options_of(text, &data, world, "auto");
    take_steps(&options, HALF, false, &second);
    snapshot_assert_same(&first.end, &second.start);
    snapshot_assert_close(&alone_is.start, &alone_is.end, &second.end, 1e-4, "resumed");
    if (tr_comm_rank(world) == 0) {
        outcome last;
        write_run_of(text, one, 1, &alone, path, ADAM CLIPPED, ONE_THREAD);
        options = options_of(text, &data, NULL, "auto");
        take_steps(&options, HALF, false, &last);
        snapshot_assert_same(&first.end, &last.start);
        snapshot_assert_close(&alone_is.start, &alone_is.end, &last.end, 1e-4,
                              "on one rank");
        free_outcome(&last);
    }
    trial_ok(tr__comm_barrier(world, &err), &err); // rank 0 removes what it shares
    free_outcome(&alone_is);
    free_outcome(&first);
    free_outcome(&second);
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_a_head), cmocka_unit_test(own_products_are_shared),
        cmocka_unit_test(copies_stay_the_same),
        cmocka_unit_test_setup_teardown(files_do_not_know_the_heads, scratch_make,
                                        scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}
