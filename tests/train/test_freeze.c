// Frozen parameters: what is trained takes the same bits as in a run that computes all
// gradients and gives the others a rate of 0; what is frozen keeps its bits, and has no
// gradients and no states.
#include "samples.h"
#include "snapshot.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 4, PART_MAX = 512, TEXT_MAX = 2048, BATCH = 7, MICRO = 2 };

// What is frozen of each model: all but the last blocks; what lies between trained
// parts; tied tensors; biases alone are trained.
static const struct world {
    const char *model, *frozen;
    bool tokens;
} worlds[] = {
#define GPT2                                                                           \
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 32, \"n_head\": 2, "       \
    "\"n_positions\": 9, \"vocab_size\": 61}"
    {GPT2, "[\"transformer.w*\", \"transformer.h.0.*\", \"*h.1.*\"]", true},
    {GPT2, "[\"*h.1.*\", \"*h.2.mlp*\", \"transformer.wte.weight\"]", true},
    {GPT2, "[\"*.weight\"]", true},
    {GPT2, "\"*.bias\"", true},
    {GPT2, "[\"*.h.*\", \"*ln_f*\", \"*wpe*\"]", true},
#define LLAMA(tied)                                                                    \
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "      \
    "\"intermediate_size\": 40, \"num_attention_heads\": 4, "                          \
    "\"num_key_value_heads\": 2, \"max_position_embeddings\": 9, "                     \
    "\"vocab_size\": 61, \"tie_word_embeddings\": " tied "}"
    {LLAMA("false"), "[\"*embed_tokens*\", \"*layers.0.*\", \"*layers.1.*\"]", true},
    {LLAMA("true"), "[\"*embed_tokens*\", \"*layers.0.*\", \"*layers.1.*\"]", true},
    {LLAMA("true"), "[\"*layers.1.*\", \"*layers.2.self_attn*\"]", true},
    {LLAMA("false"), "[\"model.*\"]", true},
    {"{\"model_type\": \"mlp\", \"layer_sizes\": [7, 19, 33, 5]}", "\"*.0.*\"", false},
    {"{\"model_type\": \"mlp\", \"layer_sizes\": [7, 19, 33, 5]}", "\"*.weight\"",
     false},
};
enum { WORLDS = sizeof worlds / sizeof *worlds };

static const char *const ways[] = {
    "\"execution\": {\"wave\": 1}",
    "\"execution\": {\"wave\": 2, \"recompute\": \"none\"}",
    "\"execution\": {\"recompute\": \"unit\"}",
    "\"activation_checkpointing\": {\"number_checkpoints\": 2, "
    "\"cpu_checkpointing\": true}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\", "
    "\"ratio\": 0.5}}",
    "\"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}, "
    "\"offload_param\": {\"device\": \"cpu\"}}",
#define NVME "\"memory\": {\"nvme\": {\"path\": \"/tmp\"}}"
    NVME ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}}",
    NVME ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}, "
         "\"offload_param\": {\"device\": \"nvme\"}}",
};
enum { WAYS = sizeof ways / sizeof *ways };

static const char *const precisions[] = {
    "", "\"bf16\": {\"enabled\": true}, ",
    "\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": "
    "\"bf16\"}, "};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static void print_run(const struct world *w, const char *way, const char *precision,
                      const char *trained_by, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, %s%s, \"steps\": %d, \"seed\": 5, "
             "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
             "\"gradient_clipping\": 0, \"out\": \"unused\", %s}",
             w->model, precision, way, STEPS, BATCH, MICRO, trained_by);
}

static void print_frozen(const struct world *w, char text[PART_MAX]) {
    snprintf(text, PART_MAX,
             "\"freeze\": %s, \"optimizer\": {\"type\": \"AdamW\", \"params\": "
             "{\"lr\": 2e-3, \"weight_decay\": 0.1}}",
             w->frozen);
}

// The same with all gradients.
static void print_slow(const struct world *w, char text[PART_MAX]) {
    snprintf(text, PART_MAX,
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 2e-3, "
             "\"weight_decay\": 0.1}, \"groups\": [{\"match\": %s, \"lr\": 0, "
             "\"weight_decay\": 0}]}",
             w->frozen);
}

static void make_data(const struct world *w, samples *data) {
    if (w->tokens) {
        samples_tokens(data, 3 * BATCH, 9, 61, 17);
    } else {
        samples_features(data, 3 * BATCH, 7, 5, 17);
    }
}

// What of tensors the two runs have, and what is trained has the same bits.
static void check_same(const snapshot *start, const snapshot *frozen,
                       const snapshot *slow, const char *what) {
    size_t trained = 0;
    for (size_t i = 0; i < frozen->count; i++) {
        const snapshot_tensor *x = &frozen->tensors[i];
        const snapshot_tensor *y = snapshot_find(slow, x->name);
        const snapshot_tensor *z = snapshot_find(start, x->name);
        size_t bytes = (size_t)x->count * sizeof(float);
        bool is_trained = x->part[1] != NULL;
        trained += is_trained;
        for (int p = 0; p < SNAPSHOT_PARTS; p++) {
            if (x->part[p] && memcmp(x->part[p], y->part[p], bytes) != 0) {
                fail_msg("%s: %s: part %d has other bits", what, x->name, p);
            }
        }
        if ((memcmp(x->part[0], z->part[0], bytes) == 0) == is_trained) {
            fail_msg("%s: %s %s", what, x->name, is_trained ? "stays" : "changes");
        }
    }
    assert_true(trained > 0 && trained < frozen->count);
}

static void run(const char *text, tr_dataset *data, snapshot *start, snapshot *end,
                tr_step_result *results) {
    trial t;
    trial_open_text(&t, text, data, NULL);
    if (start) {
        snapshot_take(start, &t);
    }
    trial_steps(&t, STEPS, results);
    trial_check_arenas(&t);
    snapshot_take(end, &t);
    trial_close(&t);
}

static void compare(const struct world *w, const char *way, const char *precision) {
    char by[PART_MAX], text[TEXT_MAX], slow_text[TEXT_MAX];
    snapshot start, frozen, slow;
    tr_step_result results[2][STEPS];
    samples data;
    make_data(w, &data);
    print_frozen(w, by);
    print_run(w, way, precision, by, text);
    print_slow(w, by);
    print_run(w, way, precision, by, slow_text);
    run(text, data.dataset, &start, &frozen, results[0]);
    run(slow_text, data.dataset, NULL, &slow, results[1]);
    check_same(&start, &frozen, &slow, text);
    for (int s = 0; s < STEPS; s++) {
        assert_memory_equal(&results[0][s].loss, &results[1][s].loss, sizeof(double));
        if (!(results[0][s].grad_norm < results[1][s].grad_norm)) {
            fail_msg("%s: step %d: norm %.9g of %.9g", text, s + 1,
                     results[0][s].grad_norm, results[1][s].grad_norm);
        }
    }
    snapshot_free(&start);
    snapshot_free(&frozen);
    snapshot_free(&slow);
    samples_free(&data);
}

// Each world in every way, in one precision after the other.
static void trained_part_is_as_at_rate_zero(void **state) {
    (void)state;
    for (int w = 0; w < WORLDS; w++) {
        for (int i = 0; i < WAYS; i++) {
            compare(&worlds[w], ways[i], precisions[(w + i) % PRECISIONS]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_part_is_as_at_rate_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
