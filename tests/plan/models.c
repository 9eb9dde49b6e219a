#include "plan/models.h"

#include "models/bert.h"
#include "models/models.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static tr_model *make_gpt2(tr_gpt2_config config) {
    tr_model *model = NULL;
    tr_error err = {0};
    config.n_inner = 4 * config.n_embd;
    config.gelu_tanh = true;
    config.layer_norm_epsilon = 1e-5;
    config.initializer_range = 0.02;
    assert_int_equal(tr__model_gpt2(&config, &model, &err), TR_OK);
    return model;
}

static tr_model *make_two_blocks(int64_t width, double dropout) {
    return make_gpt2((tr_gpt2_config){.n_layer = 2,
                                      .n_embd = width,
                                      .n_head = 2,
                                      .n_positions = 4,
                                      .vocab_size = 11,
                                      .resid_pdrop = dropout,
                                      .embd_pdrop = dropout,
                                      .attn_pdrop = dropout});
}

tr_model *test_model_small_gpt2(double dropout) {
    return make_two_blocks(8, dropout);
}

tr_model *test_model_wide_gpt2(void) {
    return make_two_blocks(16, 0);
}

tr_model *test_model_sliced_gpt2(double dropout, int slices) {
    tr_model *model = test_model_small_gpt2(dropout);
    tr_error err = {0};
    assert_int_equal(tr__model_slice(model, slices, &err), TR_OK);
    return model;
}

tr_model *test_model_deep_gpt2(int layers) {
    return make_gpt2((tr_gpt2_config){.n_layer = layers,
                                      .n_embd = 64,
                                      .n_head = 2,
                                      .n_positions = 4,
                                      .vocab_size = 11});
}

tr_model *test_model_gpt2(void) {
    return make_gpt2((tr_gpt2_config){.n_layer = 12,
                                      .n_embd = 768,
                                      .n_head = 12,
                                      .n_positions = 1024,
                                      .vocab_size = 50257});
}

tr_model *test_model_mlp(void) {
    tr_mlp_config config = {.size = {6, 7, 5, 3}, .layers = 3};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_mlp(&config, &model, &err), TR_OK);
    return model;
}

tr_model *test_model_qwen3(double dropout) {
    tr_llama_config config = {.num_hidden_layers = 2,
                              .hidden_size = 8,
                              .intermediate_size = 12,
                              .vocab_size = 11,
                              .num_attention_heads = 2,
                              .num_key_value_heads = 1,
                              .head_dim = 4,
                              .max_position_embeddings = 4,
                              .window = 2,
                              .first_windowed = 1,
                              .rms_norm_eps = 1e-6,
                              .initializer_range = 0.02,
                              .attention_dropout = dropout,
                              .qkv_bias = true,
                              .head_norm = true,
                              .tied = true,
                              .rope = {.theta = 10000}};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_llama(&tr__architecture_qwen3, &config, &model, &err),
                     TR_OK);
    return model;
}

tr_model *test_model_pairs(double dropout, int64_t groups) {
    tr_bert_config config = {.vocab_size = 11,
                             .hidden_size = 8,
                             .num_hidden_layers = 2,
                             .num_attention_heads = 2,
                             .intermediate_size = 12,
                             .max_position_embeddings = 4,
                             .type_vocab_size = 2,
                             .layer_norm_eps = 1e-12,
                             .initializer_range = 0.02,
                             .hidden_dropout_prob = dropout,
                             .attention_probs_dropout_prob = dropout,
                             .classifier_dropout = -1,
                             .pooler = true};
    const tr_task_settings task = {
        .task = TR_TASK_CONTRASTIVE,
        .embedding = {TR_TEXT_MEAN, true},
        .contrast = {.temperature = 0.05, .learned = true, .texts = 2}};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(
        tr__model_bert(&tr__architecture_bert, &config, json_object(), &model, &err),
        TR_OK);
    assert_int_equal(tr__model_set_task(model, &task, &err), TR_OK);
    tr__model_set_length(model, 4, true);
    tr__model_set_groups(model, groups);
    return model;
}

// Two stages of one block; the second block begins with a projection.
tr_model *test_model_resnet(tr_batch_scope scope) {
    tr_resnet_config config = {.depth = 6,
                               .stages = 2,
                               .blocks = {1, 1},
                               .width = 4,
                               .num_channels = 1,
                               .image_size = 8,
                               .num_labels = 5,
                               .projection = true,
                               .batch_norm = scope,
                               .batch_norm_eps = 1e-5,
                               .batch_norm_momentum = 0.1};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_resnet(&config, &model, &err), TR_OK);
    return model;
}

tr_plan_request test_request(const tr_model *model, int64_t m, int64_t g) {
    return (tr_plan_request){.model = model,
                             .train_batch_size = m * g,
                             .micro_batch = m,
                             .accumulation_steps = g,
                             .mesh = tr_mesh_of_data(1, 0),
                             .optimizer_states = 2,
                             .threads = 1};
}

tr_plan *test_plan(const tr_plan_request *request) {
    tr_plan *plan = NULL;
    tr_error err = {0};
    if (tr_plan_make(request, &plan, &err) != TR_OK) {
        fail_msg("no plan: %s", err.message);
    }
    return plan;
}
