// Split invariance: however an effective batch is cut into micro-batches and waves, and
// whatever is recomputed, the same update comes out. Bit for bit where nothing but the
// order of work changes, else within 1e-4 of the distance moved.
// Labels: isa check guard
#include "samples.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 5, CUTS_AT_LEAST = 300, TEXT_MAX = 2048 };

static const double tolerance = 1e-4;

// Everything that a run is, but for how its batch is cut.
typedef struct world {
    int index;
    bool tokens;
    int64_t batch, samples;
    int64_t heads, positions; // language models
    const char *kin;          // keys of one of Llama's kin, NULL: GPT-2
    const char *frozen;       // patterns of parameters
    double dropout;
    bool drop_last, shuffled;
    int threads;
    int optimizer;
    int units;
    samples data;
} world;

typedef struct cut {
    int64_t micro, wave, recomputed;
    int slices; // of the vocabulary; 0: 1
} cut;

// What a run of STEPS steps leaves behind.
typedef struct outcome {
    snapshot start, gradients, end; // gradients: of the first step
    tr_step_result results[STEPS];
} outcome;

static const char *const optimizers[] = {
    "{\"type\": \"AdamW\", \"params\": {\"lr\": 2e-3, \"weight_decay\": 0.1},"
    " \"groups\": [{\"match\": \"*.bias\", \"weight_decay\": 0}]}",
    "{\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3, \"weight_decay\": 0.01,"
    " \"betas\": [0.8, 0.95]}, \"groups\": [{\"match\": \"*.weight\", \"lr\": 5e-4}]}",
    "{\"type\": \"SGD\", \"params\": {\"lr\": 0.05, \"momentum\": 0.9}}",
    // GPT-2's key bias has a gradient of rounding noise, which LAMB would take into the
    // norm of its tensor: a vector.
    "{\"type\": \"Lamb\", \"params\": {\"lr\": 5e-3, \"weight_decay\": 0.1, "
    "\"exclude_1d\": true}}",
    // At the default coefficient of 0.001 and these rates a step moves weights by so
    // little that their own rounding counts.
    "{\"type\": \"LARS\", \"params\": {\"lr\": 2, \"weight_decay\": 0.01, "
    "\"trust_coefficient\": 0.02}}",
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

// Each has biases, which a group of an optimizer is for.
static const char *const kin[] = {
    "\"model_type\": \"llama\", \"attention_bias\": true, "
    "\"tie_word_embeddings\": true",
    "\"model_type\": \"qwen2\", \"use_sliding_window\": true, "
    "\"sliding_window\": 5, \"max_window_layers\": 1",
    "\"model_type\": \"qwen3\", \"attention_bias\": true",
};
enum { KIN = sizeof kin / sizeof *kin };

static void print_model(const world *w, char text[512]) {
    if (w->tokens && w->kin) {
        snprintf(text, 512,
                 "{%s, \"num_hidden_layers\": 2, \"hidden_size\": 32, "
                 "\"intermediate_size\": 40, \"num_attention_heads\": %d, "
                 "\"num_key_value_heads\": 2, \"head_dim\": 8, "
                 "\"max_position_embeddings\": %d, \"vocab_size\": 61, "
                 "\"attention_dropout\": %g}",
                 w->kin, (int)w->heads, (int)w->positions, w->dropout);
    } else if (w->tokens) {
        snprintf(text, 512,
                 "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, "
                 "\"n_head\": %d, \"n_positions\": %d, \"vocab_size\": 61, "
                 "\"resid_pdrop\": %g, \"embd_pdrop\": %g, \"attn_pdrop\": %g}",
                 (int)w->heads, (int)w->positions, w->dropout, w->dropout, w->dropout);
    } else {
        snprintf(text, 512,
                 "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 19, 33, 5]}");
    }
}

static void print_run(const world *w, const cut *c, char text[TEXT_MAX]) {
    char model[512];
    print_model(w, model);
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, \"freeze\": [%s], "
             "\"data\": {\"order\": \"%s\", \"drop_last\": %s}, "
             "\"steps\": %d, \"seed\": %d, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, "
             "\"execution\": {\"wave\": %d, \"threads\": %d, "
             "\"vocabulary_slices\": %d}, "
             "\"activation_checkpointing\": {\"number_checkpoints\": %d}, "
             "\"gradient_clipping\": %g, \"optimizer\": %s, \"scheduler\": "
             "{\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_min_lr\": 5e-4, "
             "\"warmup_max_lr\": 2e-3, \"warmup_num_steps\": 3}}, \"out\": \"unused\"}",
             model, w->frozen, w->shuffled ? "shuffled" : "sequential",
             w->drop_last ? "true" : "false", STEPS, w->index, (int)w->batch,
             (int)c->micro, (int)c->wave, w->threads, c->slices ? c->slices : 1,
             (int)c->recomputed, w->index % 4 ? 0.3 : 0.0, optimizers[w->optimizer]);
}

// Of GPT-2, of Llama and its kin, of an MLP: nothing, the lower units, parts of all.
static const char *const frozen[][4] = {
    {"", "\"*w?e*\", \"*.h.0.*\"", "\"*.attn.*\", \"*ln_2*\"", "\"*.mlp.*.weight\""},
    {"", "\"*embed*\", \"*.layers.0.*\"", "\"*self_attn*\"", "\"*norm*\", \"*.mlp.*\""},
    {"", "", "\"*.0.*\"", "\"*.1.*\", \"*.2.weight\""},
};

static void world_make(world *w, int index, uint64_t *random) {
    static const int64_t batches[] = {2, 3, 4, 5, 7, 8, 11, 12, 13};
    *w = (world){.index = index, .tokens = index % 2 == 0};
    w->kin = index % 4 == 2 ? kin[index / 4 % KIN] : NULL;
    w->batch = batches[test_between(random, 0, 8)];
    w->samples = test_between(random, w->batch / 2 + 1, 3 * w->batch);
    w->heads = INT64_C(1) << test_between(random, 1, 2);
    w->positions = test_between(random, 8, 16);
    w->dropout = test_between(random, 0, 1) ? 0.1 : 0;
    w->drop_last = test_between(random, 0, 1) && w->samples >= w->batch;
    w->shuffled = test_between(random, 0, 1);
    w->threads = (int)test_between(random, 1, 2);
    w->optimizer = (int)test_between(random, 0, OPTIMIZERS - 1);
    w->units = w->tokens ? 4 : 3;
    w->frozen = frozen[!w->tokens ? 2 : w->kin ? 1 : 0][index / 4 % 4];
    if (w->tokens) {
        samples_tokens(&w->data, w->samples, w->positions, 61, test_random(random));
    } else {
        samples_features(&w->data, w->samples, 7, 5, test_random(random));
    }
    int64_t mask = test_between(random, 0, 3);
    if (mask == 1 || mask == 3) {
        samples_mask_some(&w->data, 3, test_random(random));
    }
    if (mask >= 2) { // in a row, so that whole micro-batches have no target
        int64_t begin = test_between(random, 0, w->samples - 1);
        int64_t end = begin + test_between(random, 1, w->samples / 2);
        samples_mask(&w->data, begin, end < w->samples ? end : w->samples);
    }
}

static void outcome_make(const world *w, const cut *c, outcome *o) {
    char text[TEXT_MAX];
    trial t;
    print_run(w, c, text);
    trial_open_text(&t, text, w->data.dataset, NULL);
    snapshot_take(&o->start, &t);
    trial_steps(&t, 1, o->results);
    snapshot_take_gradients(&o->gradients, &t);
    trial_steps(&t, STEPS - 1, o->results + 1);
    snapshot_take(&o->end, &t);
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_close(&t);
}

static void outcome_free(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->gradients);
    snapshot_free(&o->end);
}

static bool near(double a, double b, double share) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= share * fabs(b);
}

static void check_results(const outcome *o, const outcome *uncut, const char *what) {
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *a = &o->results[s], *b = &uncut->results[s];
        if (!near(a->loss, b->loss, 1e-5) ||
            !near(a->grad_norm, b->grad_norm, tolerance)) {
            fail_msg("%s: step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g",
                     what, s + 1, a->loss, b->loss, a->grad_norm, b->grad_norm);
        }
        assert_true(a->targets == b->targets && a->lr == b->lr);
        assert_int_equal(a->samples, b->samples);
        assert_int_equal(a->batch, b->batch);
        assert_int_equal(a->epoch, b->epoch);
        assert_int_equal(a->update, b->update);
        assert_int_equal(a->skipped, b->skipped);
    }
}

static void check_against(const world *w, const cut *c, const outcome *o,
                          const outcome *uncut) {
    char what[224];
    snprintf(
        what, sizeof what,
        "world %d: %s, T %d of %d samples, micro-batch %d, wave %d, recomputed %d, "
        "%d slices",
        w->index, w->tokens ? "GPT-2" : "MLP", (int)w->batch, (int)w->samples,
        (int)c->micro, (int)c->wave, (int)c->recomputed, c->slices);
    check_results(o, uncut, what);
    snapshot_assert_same(&o->start, &uncut->start);
    snapshot_assert_close(NULL, &uncut->gradients, &o->gradients, 1e-5, what);
    snapshot_assert_close(&uncut->start, &uncut->end, &o->end, tolerance, what);
}

static void check_same(const outcome *a, const outcome *b) {
    snapshot_assert_same(&a->gradients, &b->gradients);
    snapshot_assert_same(&a->end, &b->end);
    for (int s = 0; s < STEPS; s++) {
        assert_memory_equal(&a->results[s].loss, &b->results[s].loss, sizeof(double));
        assert_memory_equal(&a->results[s].grad_norm, &b->results[s].grad_norm,
                            sizeof(double));
    }
}

// At one m: two waves, each with nothing and with something recomputed. What is
// recomputed never changes a bit; nor does the wave where no weight is tied.
static int check_micro_batch(const world *w, int64_t micro, const outcome *uncut,
                             uint64_t *random) {
    int64_t g = (w->batch + micro - 1) / micro;
    int64_t wave[2] = {1, test_between(random, 1, g)};
    outcome all[2][2];
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            cut c = {micro, wave[i], k ? test_between(random, 1, w->units) : 0, 1};
            outcome_make(w, &c, &all[i][k]);
            check_against(w, &c, &all[i][k], uncut);
        }
        check_same(&all[i][0], &all[i][1]);
    }
    if (!w->tokens) {
        check_same(&all[0][0], &all[1][0]);
    }
    for (int i = 0; i < 4; i++) {
        outcome_free(&all[i / 2][i % 2]);
    }
    return wave[1] > 1 ? 4 : 2; // the same cut twice counts once
}

static void cuts_change_nothing(void **state) {
    uint64_t random = 20240229;
    int cuts = 0;
    (void)state;
    for (int i = 0; cuts < CUTS_AT_LEAST; i++) {
        world w;
        outcome uncut;
        world_make(&w, i, &random);
        outcome_make(&w, &(cut){w.batch, 1, 0, 1}, &uncut);
        int64_t first = test_between(&random, 1, w.batch - 1);
        int64_t second = test_between(&random, 1, w.batch);
        cuts += check_micro_batch(&w, first, &uncut, &random);
        if (second != first) {
            cuts += check_micro_batch(&w, second, &uncut, &random);
        }
        outcome_free(&uncut);
        samples_free(&w.data);
    }
}

// A tied weight's gradient is added up in the order of the units that use it, which the
// wave changes; all others keep their bits, until the first clipping mixes them.
static void wave_changes_only_tied_gradients(void **state) {
    uint64_t random = 7;
    (void)state;
    world w = {.index = 4, // not clipped
               .tokens = true,
               .batch = 6,
               .samples = 17,
               .heads = 4,
               .positions = 9,
               .dropout = 0.1,
               .shuffled = true,
               .threads = 2,
               .units = 4,
               .frozen = ""};
    outcome one, three;
    samples_tokens(&w.data, w.samples, w.positions, 61, test_random(&random));
    outcome_make(&w, &(cut){2, 1, 0, 1}, &one);
    outcome_make(&w, &(cut){2, 3, 2, 1}, &three);
    for (size_t i = 0; i < one.gradients.count; i++) {
        const snapshot_tensor *a = &one.gradients.tensors[i];
        const snapshot_tensor *b = snapshot_find(&three.gradients, a->name);
        if (strcmp(a->name, "transformer.wte.weight") != 0) {
            assert_memory_equal(a->part[0], b->part[0],
                                (size_t)a->count * sizeof(float));
        }
    }
    outcome_free(&one);
    outcome_free(&three);
    samples_free(&w.data);
}

// Every number of slices of the vocabulary, in every cut: the same update but for
// rounding; what is recomputed changes no bit of it.
static void slices_change_nothing(void **state) {
    static const int slices[] = {2, 3, 7, 16};
    uint64_t random = 50257;
    (void)state;
    for (int i = 0; i < 24; i += 2) { // token worlds
        world w;
        outcome uncut, got, again;
        world_make(&w, i, &random);
        outcome_make(&w, &(cut){w.batch, 1, 0, 1}, &uncut);
        for (int k = 0; k < 4; k++) {
            int64_t micro = test_between(&random, 1, w.batch);
            int64_t g = (w.batch + micro - 1) / micro;
            cut c = {micro, test_between(&random, 1, g), 0, slices[k]};
            outcome_make(&w, &c, &got);
            check_against(&w, &c, &got, &uncut);
            c.recomputed = test_between(&random, 1, w.units);
            outcome_make(&w, &c, &again);
            check_same(&got, &again);
            outcome_free(&got);
            outcome_free(&again);
        }
        outcome_free(&uncut);
        samples_free(&w.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(slices_change_nothing),
        cmocka_unit_test(wave_changes_only_tied_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
