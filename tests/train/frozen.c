#include "frozen.h"

#include "samples.h"
#include "snapshot.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 4, PART_MAX = 512, TEXT_MAX = 2048, POSITIONS = 9, VOCABULARY = 61 };

#define GPT2                                                                           \
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 32, \"n_head\": 2, "       \
    "\"n_positions\": 9, \"vocab_size\": 61}"
#define LLAMA(tied)                                                                    \
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "      \
    "\"intermediate_size\": 40, \"num_attention_heads\": 4, "                          \
    "\"num_key_value_heads\": 2, \"max_position_embeddings\": 9, "                     \
    "\"vocab_size\": 61, \"tie_word_embeddings\": " tied "}"
#define MLP "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 19, 33, 5]}"

const frozen_world frozen_worlds[FROZEN_WORLDS] = {
    {GPT2, "[\"transformer.w*\", \"transformer.h.0.*\", \"*h.1.*\"]", true},
    {GPT2, "[\"*h.1.*\", \"*h.2.mlp*\", \"transformer.wte.weight\"]", true},
    {GPT2, "[\"*.weight\"]", true},
    {GPT2, "\"*.bias\"", true},
    {GPT2, "[\"*.h.*\", \"*ln_f*\", \"*wpe*\"]", true},
    {LLAMA("false"), "[\"*embed_tokens*\", \"*layers.0.*\", \"*layers.1.*\"]", true},
    {LLAMA("true"), "[\"*embed_tokens*\", \"*layers.0.*\", \"*layers.1.*\"]", true},
    {LLAMA("true"), "[\"*layers.1.*\", \"*layers.2.self_attn*\"]", true},
    {LLAMA("false"), "[\"model.*\"]", true},
    {MLP, "\"*.0.*\"", false},
    {MLP, "\"*.weight\"", false},
};

static void print_run(const frozen_world *w, const frozen_way *way,
                      const char *trained_by, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, \"steps\": %d, \"seed\": 5, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"gradient_clipping\": 0, "
             "\"out\": \"unused\", %s%s%s}",
             w->model, STEPS, way->batch, way->micro, way->keys,
             way->keys[0] ? ", " : "", trained_by);
}

static void print_frozen(const frozen_world *w, char text[PART_MAX]) {
    snprintf(text, PART_MAX,
             "\"freeze\": %s, \"optimizer\": {\"type\": \"AdamW\", \"params\": "
             "{\"lr\": 2e-3, \"weight_decay\": 0.1}}",
             w->frozen);
}

static void print_slow(const frozen_world *w, char text[PART_MAX]) {
    snprintf(text, PART_MAX,
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 2e-3, "
             "\"weight_decay\": 0.1}, \"groups\": [{\"match\": %s, \"lr\": 0, "
             "\"weight_decay\": 0}]}",
             w->frozen);
}

static void run(const char *text, const frozen_way *way, tr_dataset *data,
                tr_comm *comm, snapshot *start, snapshot *end,
                tr_step_result *results) {
    run_options options = {.text = text,
                           .own_train = data,
                           .own_validation = data,
                           .comm = comm,
                           .resume = "never"};
    tr_error err = {0};
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    trial t;
    trial_open(&t, &options);
    if (way->beside) {
        t.engine->defers = true;
        trial_ok(tr__executor_host_beside(t.engine->executor, &err), &err);
    }
    if (start) {
        snapshot_gather(start, &t);
    }
    trial_steps(&t, STEPS - 1, results);
    trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
    trial_steps(&t, 1, results + STEPS - 1);
    trial_check_arenas(&t);
    trial_ok(tr__engine_settle(t.engine, &err), &err);
    snapshot_gather(end, &t);
    trial_close(&t);
}

void frozen_folder(const char *out) {
    char text[TEXT_MAX];
    tr_error err = {0};
    samples data;
    trial t;
    samples_tokens(&data, 1, POSITIONS, VOCABULARY, 17);
    snprintf(text, sizeof text,
             "{\"model\": %s, \"steps\": 1, \"train_batch_size\": 1, "
             "\"checkpoint\": {\"dtype\": \"bf16\"}, \"out\": \"%s\"}",
             frozen_worlds[0].model, out);
    trial_open_text(&t, text, data.dataset, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
    samples_free(&data);
}

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

static void check_results(const tr_step_result *frozen, const tr_step_result *slow,
                          const char *what) {
    for (int s = 0; s < STEPS; s++) {
        if (frozen[s].loss != slow[s].loss ||
            !(frozen[s].grad_norm < slow[s].grad_norm)) {
            fail_msg("%s: step %d: loss %.9g of %.9g, norm %.9g of %.9g", what, s + 1,
                     frozen[s].loss, slow[s].loss, frozen[s].grad_norm,
                     slow[s].grad_norm);
        }
    }
}

void frozen_compare(const frozen_world *world, const frozen_way *way, tr_comm *comm) {
    char by[PART_MAX], text[TEXT_MAX], slow_text[TEXT_MAX];
    snapshot start, frozen, slow;
    tr_step_result results[2][STEPS];
    samples data;
    if (world->tokens) {
        samples_tokens(&data, 3 * way->batch, POSITIONS, VOCABULARY, 17);
    } else {
        samples_features(&data, 3 * way->batch, 7, 5, 17);
    }
    print_frozen(world, by);
    print_run(world, way, by, text);
    print_slow(world, by);
    print_run(world, way, by, slow_text);
    run(text, way, data.dataset, comm, &start, &frozen, results[0]);
    run(slow_text, way, data.dataset, comm, NULL, &slow, results[1]);
    check_same(&start, &frozen, &slow, text);
    check_results(results[0], results[1], text);
    snapshot_free(&start);
    snapshot_free(&frozen);
    snapshot_free(&slow);
    samples_free(&data);
}
