// More ranks on the tensor axis than heads of keys: who has which rows, who sums their
// gradients and counts them, by hand; that plans of all ranks fit together, and that
// what they say otherwise is found; and which numbers of ranks are refused.

#include "models/llama.h"
#include "plan/flow/passes.h"
#include "plan/models.h"
#include "plan/print/print.h"
#include "plan/proof/check.h"
#include "plan/proof/prove.h"
#include "plan/units/offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADS = 8, DEPTH = 4, WIDTH = 32, LAYERS = 2, RANKS_MOST = 8 };

static tr_llama_config config_of(int64_t heads, int64_t keys) {
    return (tr_llama_config){.num_hidden_layers = LAYERS,
                             .hidden_size = WIDTH,
                             .intermediate_size = 48,
                             .vocab_size = 64,
                             .num_attention_heads = heads,
                             .num_key_value_heads = keys,
                             .head_dim = DEPTH,
                             .max_position_embeddings = 4,
                             .rms_norm_eps = 1e-6,
                             .initializer_range = 0.02,
                             .qkv_bias = true,
                             .rope = {.theta = 10000}};
}

static tr_model *make_of(const tr_llama_config *config) {
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_llama(&tr__architecture_qwen2, config, &model, &err),
                     TR_OK);
    return model;
}

static tr_model *make_model(int64_t heads, int64_t keys) {
    tr_llama_config config = config_of(heads, keys);
    return make_of(&config);
}

static tr_plan_request request_on(const tr_model *model, tr_mesh mesh, int64_t rank) {
    tr_plan_request request = test_request(model, 2, 2);
    request.mesh = tr__mesh_of_rank(&mesh, rank);
    request.train_batch_size *= mesh.size[TR_AXIS_DATA];
    return request;
}

static const tr_plan_param *find_param(const tr_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->param_count; i++) {
        if (strstr(plan->params[i].name, name)) {
            return &plan->params[i];
        }
    }
    fail_msg("there is no %s", name);
    return NULL;
}

// Of 8 heads of queries and 2 of keys, on 4 ranks.
static void neighbours_have_the_same_head(void **state) {
    static const char *const repeated[] = {
        "layers.0.self_attn.k_proj.weight", "layers.1.self_attn.v_proj.weight",
        "layers.1.self_attn.k_proj.bias", "layers.0.self_attn.v_proj.bias"};
    tr_model *model = make_model(HEADS, 2);
    const tr_mesh mesh = {.size = {1, 4, 1}};
    int64_t parameters = 0;
    (void)state;
    for (int64_t rank = 0; rank < 4; rank++) {
        tr_plan_request request = request_on(model, mesh, rank);
        tr_plan *plan = test_plan(&request);
        assert_int_equal(plan->request.mesh.repeats, 2);
        for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
            const tr_plan_param *param = find_param(plan, repeated[i]);
            const tr_flat *flat = &plan->flats[param->flat];
            int64_t row = param->shape.rank > 1 ? WIDTH : 1;
            assert_int_equal(param->shape.dim[0], DEPTH);
            assert_int_equal(param->stored_shape.dim[0], 2 * DEPTH);
            assert_int_equal(param->lies.first, rank / 2 * DEPTH * row);
            assert_true(flat->repeated && flat->axes.summed == TR_ON_REPEATS);
            assert_int_equal(tr__owns(&flat->axes, &plan->request.mesh), rank % 2 == 0);
        }
        const tr_plan_param *queries =
            find_param(plan, "layers.0.self_attn.q_proj.weight");
        assert_int_equal(queries->shape.dim[0], HEADS / 4 * DEPTH);
        assert_int_equal(queries->lies.first, rank * HEADS / 4 * DEPTH * WIDTH);
        assert_false(plan->flats[queries->flat].repeated);
        assert_true(parameters == 0 || parameters == tr_plan_parameters(plan));
        parameters = tr_plan_parameters(plan);
        tr_plan_destroy(plan);
    }
    tr_plan_request alone = test_request(model, 2, 2);
    tr_plan *whole = test_plan(&alone);
    assert_int_equal(parameters, tr_plan_parameters(whole));
    tr_plan_destroy(whole);
    tr_model_destroy(model);
}

// Each rank keeps a quarter of the queries, and half of keys and values.
static void memory_is_that_of_whole_heads(void **state) {
    tr_model *model = make_model(HEADS, 2), *each = make_model(HEADS, 4);
    const tr_mesh mesh = {.size = {1, 4, 1}};
    tr_plan_request request = request_on(model, mesh, 1);
    tr_plan *repeated = test_plan(&request);
    request = request_on(each, mesh, 1);
    tr_plan *own = test_plan(&request);
    const tr_ledger *a = tr_plan_ledger(repeated), *b = tr_plan_ledger(own);
    (void)state;
    // A head each, whether it is the rank's own or not.
    int64_t more = a->bytes[TR_SPACE_DEVICE][TR_LEDGER_parameters] -
                   b->bytes[TR_SPACE_DEVICE][TR_LEDGER_parameters];
    assert_in_range(more, 0, LAYERS * 2 * TR_ALIGNMENT); // flat buffers end at lines
    // What they sum: weights and biases of one head of keys, and of values, in f32, of
    // which each of two ranks sends half; twice.
    int64_t summed = LAYERS * 2 * (DEPTH * WIDTH + DEPTH) * (int64_t)sizeof(float);
    int64_t sent = repeated->traffic.reduce - own->traffic.reduce;
    assert_in_range(sent, summed / 2, summed / 2 + LAYERS * TR_ALIGNMENT);
    sent = repeated->traffic.gather - own->traffic.gather;
    assert_in_range(sent, summed / 2, summed / 2 + LAYERS * TR_ALIGNMENT);
    tr_plan_destroy(repeated);
    tr_plan_destroy(own);
    tr_model_destroy(model);
    tr_model_destroy(each);
}

// ---- products apart

// A model's own products of queries, keys and values, which it joins.
static void build_joined(tr_graph *g, const void *config) {
    static const struct {
        const char *name;
        int64_t rows;
    } products[] = {{"q", HEADS * DEPTH}, {"k", 2 * DEPTH}, {"v", 2 * DEPTH}};
    const tr_init draw = {TR_INIT_UNIFORM, -0.3f, 0.3f};
    const int64_t dim[] = {4, WIDTH, 0};
    tr_value part[3], x = tr_reshape(g, tr_graph_data(g, "features"), dim);
    (void)config;
    for (int i = 0; i < 3; i++) {
        tr_shape shape = TR_SHAPE2(products[i].rows, WIDTH);
        tr_value weight = tr_graph_param(g, products[i].name, shape, draw);
        part[i] = tr_linear(g, TR_LINEAR_OUT_IN, x, weight, TR_NO_VALUE);
    }
    tr_value y = tr_join_columns(g, part, 3);
    y = tr_grouped_attention(g, y, HEADS, 2, 0, 0);
    tr_value weight = tr_graph_param(g, "o", TR_SHAPE2(WIDTH, WIDTH), draw);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, y, weight, TR_NO_VALUE));
}

static void joined_products_are_cut(void **state) {
    static const tr_model_unit units[] = {{"all", "all", "", build_joined, NULL}};
    const tr_model model = {.size = sizeof model,
                            .type = "joined",
                            .unit_count = 1,
                            .units = units,
                            .batch = tr_batch_features(4 * WIDTH)};
    static const struct {
        const char *name;
        int64_t rows, columns;
        bool repeated;
    } params[] = {{"q", 2 * DEPTH, WIDTH, false},
                  {"k", DEPTH, WIDTH, true},
                  {"v", DEPTH, WIDTH, true},
                  {"o", WIDTH, 2 * DEPTH, false}};
    const tr_mesh mesh = {.size = {1, 4, 1}};
    (void)state;
    for (int64_t rank = 0; rank < 4; rank++) {
        tr_plan_request request = request_on(&model, mesh, rank);
        tr_plan *plan = test_plan(&request);
        for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
            const tr_plan_param *param = find_param(plan, params[i].name);
            assert_int_equal(param->shape.dim[0], params[i].rows);
            assert_int_equal(param->shape.dim[1], params[i].columns);
            assert_int_equal(plan->flats[param->flat].repeated, params[i].repeated);
        }
        tr_plan_destroy(plan);
    }
}

// ---- all ranks

typedef struct way {
    tr_mesh mesh;
    int64_t heads, keys;
    int stage;
    bool sequence, recomputed, reproducible;
} way;

static const way ways[] = {
    {{.size = {1, 4, 1}}, 8, 2, 0, false, false, false},
    {{.size = {1, 2, 1}}, 8, 1, 0, true, true, false},
    {{.size = {1, 4, 1}}, 8, 1, 0, true, false, true},
    {{.size = {1, 8, 1}}, 8, 2, 0, false, true, false},
    {{.size = {2, 4, 1}}, 8, 2, 1, true, false, false},
    {{.size = {2, 4, 1}}, 4, 2, 2, false, true, true},
    {{.size = {2, 2, 1}}, 8, 1, 3, true, true, false},
    {{.size = {1, 4, 2}}, 8, 2, 0, true, true, false},
    {{.size = {2, 2, 2}}, 8, 1, 1, false, false, true},
};

static void plans_of_all_ranks_fit_together(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const way *at = &ways[i];
        tr_model *model = make_model(at->heads, at->keys);
        const tr_plan *plans[RANKS_MOST];
        tr_plan *made[RANKS_MOST];
        size_t count = (size_t)tr_mesh_ranks(&at->mesh);
        tr_error err = {0};
        for (size_t r = 0; r < count; r++) {
            tr_plan_request request = request_on(model, at->mesh, (int64_t)r);
            request.stage = at->stage;
            request.sequence_parallel = at->sequence;
            request.recomputed_units = at->recomputed ? LAYERS : 0;
            request.reproducible = at->reproducible;
            plans[r] = made[r] = test_plan(&request);
            assert_int_equal(made[r]->request.mesh.repeats,
                             at->mesh.size[TR_AXIS_TENSOR] / at->keys);
        }
        if (tr__plans_match(plans, count, &err) != TR_OK) {
            fail_msg("way %d: %s", (int)i, err.message);
        }
        for (size_t r = 0; r < count; r++) {
            tr_plan_destroy(made[r]);
        }
        tr_model_destroy(model);
    }
}

// ---- what is wrong

static void must_find(const tr_plan *plan, const char *what) {
    tr_error err = {0};
    if (tr__check_parts(plan, &err) != TR_INTERNAL) {
        fail_msg("%s is not found", what);
    }
}

static void other_sums_and_rows_are_found(void **state) {
    tr_model *model = make_model(HEADS, 2);
    const tr_mesh mesh = {.size = {1, 4, 1}};
    tr_plan_request request = request_on(model, mesh, 3);
    tr_plan *plan = test_plan(&request);
    tr_error err = {0};
    int repeated = 0;
    (void)state;
    assert_int_equal(tr__check_parts(plan, &err), TR_OK);
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        if (flat->all == 0) {
            continue; // no parameter is there
        }
        flat->axes.summed ^= TR_ON_REPEATS;
        must_find(plan, "another sum");
        flat->axes.summed ^= TR_ON_REPEATS;
        flat->repeated = !flat->repeated;
        must_find(plan, "who has it");
        flat->repeated = !flat->repeated;
        repeated += flat->repeated;
    }
    assert_int_equal(repeated, LAYERS);
    plan->request.mesh.repeats = 4;
    must_find(plan, "another number of repeats");
    plan->request.mesh.repeats = 2;
    plan->request.mesh.at[TR_AXIS_TENSOR] = 1; // as rank 1, of the other head
    must_find(plan, "another rank's rows");
    plan->request.mesh.at[TR_AXIS_TENSOR] = 3;
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Each half of a sum left out, or between other ranks, is no plan.
static void sums_left_out_are_found(void **state) {
    tr_model *model = make_model(HEADS, 2);
    const tr_mesh mesh = {.size = {1, 4, 1}};
    tr_plan_request request = request_on(model, mesh, 2);
    tr_plan *plan = test_plan(&request);
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_error err = {0};
    int found = 0;
    (void)state;
    for (size_t i = 0; i < train->count; i++) {
        tr_exchange *exchange = &train->steps[i].payload.exchange;
        if (train->steps[i].shape == TR_STEP_IS_EXCHANGE &&
            exchange->group == TR_ON_REPEATS) {
            exchange->group = TR_ON_TENSOR;
            assert_int_equal(tr__plan_prove(plan, &err), TR_INTERNAL);
            exchange->group = TR_ON_REPEATS;
            int guard = (int)train->steps[i].guard;
            train->steps[i].guard = TR_GUARD_APPLIED;
            assert_int_equal(tr__plan_prove(plan, &err), TR_INTERNAL);
            train->steps[i].guard = (unsigned char)guard;
            found++;
        }
    }
    assert_int_equal(found, 2 * LAYERS); // reduced, gathered
    assert_int_equal(tr__plan_prove(plan, &err), TR_OK);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// ---- for people

static void it_is_printed(void **state) {
    tr_model *model = make_model(HEADS, 2);
    const tr_mesh mesh = {.size = {1, 4, 1}};
    tr_plan_request request = request_on(model, mesh, 0);
    tr_plan *plan = test_plan(&request);
    char *text = NULL, line[128];
    size_t length = 0;
    tr_error err = {0};
    FILE *to = open_memstream(&text, &length);
    (void)state;
    assert_non_null(to);
    assert_int_equal(tr__plan_print(plan, to, &err), TR_OK);
    fclose(to);
    snprintf(line, sizeof line,
             "heads of keys: each on 2 tensor ranks, which sum its gradients "
             "(%d parameters)",
             LAYERS * 2 * (2 * DEPTH * WIDTH + 2 * DEPTH));
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "group repeats"));
    free(text);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void other_numbers_of_ranks_are_refused(void **state) {
    static const struct {
        int64_t heads, keys, ranks;
        const char *sizes;
    } cases[] = {{8, 2, 3, "Sizes that can: 1, 2, 4, 8"},
                 {12, 3, 2, "Sizes that can: 1, 3, 6, 12"},
                 {6, 3, 4, "Sizes that can: 1, 3, 6"},
                 {24, 6, 4, "Sizes that can: 1, 2, 3, 6, 12, 24"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_model *model = make_model(cases[i].heads, cases[i].keys);
        tr_mesh mesh = {.size = {1, cases[i].ranks, 1}};
        tr_plan_request request = request_on(model, mesh, 0);
        tr_plan *plan = NULL;
        tr_error err = {0};
        assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
        assert_non_null(strstr(err.message, "tensor_parallel.size is "));
        assert_string_equal(err.message + strlen(err.message) - strlen(cases[i].sizes),
                            cases[i].sizes);
        tr_model_destroy(model);
    }
}

// ---- states in 8 bits

static tr_plan_request packed_on(const tr_model *model, int64_t ranks, int64_t rank) {
    const tr_mesh mesh = {.size = {1, ranks, 1}};
    tr_plan_request request = request_on(model, mesh, rank);
    request.apart = TR_APART_SMALL;
    request.apart_state_count = 2;
    request.states[0].type = TR_STATE_I8;
    request.states[1].type = TR_STATE_U8;
    return request;
}

static tr_model *make_wide(void) {
    tr_llama_config config = config_of(HEADS, 2);
    config.num_hidden_layers = 1;
    config.hidden_size = 16;
    config.intermediate_size = 1024;
    config.head_dim = 128;
    return make_of(&config);
}

// What is in 8 bits does not depend on the mesh: the small tensors of the whole model,
// and what is stacked with one of these, are not.
static void states_are_of_whole_tensors(void **state) {
    static const struct {
        const char *name;
        bool packed;
    } params[] = {{"q_proj.weight", true},    {"k_proj.weight", true},
                  {"v_proj.weight", true},    {"q_proj.bias", false},
                  {"k_proj.bias", false},     {"o_proj.weight", true},
                  {"down_proj.weight", true}, {"up_proj.weight", true},
                  {"norm.weight", false},     {"embed_tokens.weight", false}};
    tr_model *model = make_wide();
    (void)state;
    for (int64_t ranks = 1; ranks <= 4; ranks *= 2) {
        tr_plan_request request = packed_on(model, ranks, ranks - 1);
        tr_plan *plan = test_plan(&request);
        for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
            const tr_plan_param *param = find_param(plan, params[i].name);
            if (plan->flats[param->flat].apart == params[i].packed) {
                fail_msg("%s, %d ranks", params[i].name, (int)ranks);
            }
        }
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// On 8 ranks a row of 1,024 columns is cut every 128 of them.
static void no_rank_cuts_a_block(void **state) {
    tr_model *model = make_wide();
    tr_plan_request request = packed_on(model, 8, 0);
    tr_plan *plan = NULL;
    tr_error err = {0};
    (void)state;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "self_attn.o_proj.weight of layers.0 after "
                                        "every 128 elements"));
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_have_the_same_head),
        cmocka_unit_test(memory_is_that_of_whole_heads),
        cmocka_unit_test(joined_products_are_cut),
        cmocka_unit_test(plans_of_all_ranks_fit_together),
        cmocka_unit_test(other_sums_and_rows_are_found),
        cmocka_unit_test(sums_left_out_are_found),
        cmocka_unit_test(it_is_printed),
        cmocka_unit_test(states_are_of_whole_tensors),
        cmocka_unit_test(no_rank_cuts_a_block),
        cmocka_unit_test(other_numbers_of_ranks_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
