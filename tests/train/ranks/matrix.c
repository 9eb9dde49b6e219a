// Run on W ranks: whatever the stage, the wave and the batch's cut among ranks,
// training is that of one process. Within 1e-4 of the distance moved of the uncut
// batch; in reproducible mode bit for bit that of one process at the same micro-batch.
// And every step moves the bytes that the plan says. With "adapting": a few cuts with
// each of the optimizers that need the norms of whole tensors; with "half": in bf16 and
// fp16; with "sums": with gradients summed in these; with "frozen": with parameters
// that are not trained; with "nodes": as if two ranks were on each node; with "ring" or
// "tree": the same, and exchanges by that algorithm.
#include "base/memory.h"
#include "on_ranks.h"
#include "plan/flow/work.h"
#include "train/own_model.h"
#include "train/samples.h"
#include "train/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 5,
    MICRO = 2,
    VOCABULARY = 61,
    FEATURES = 7,
    CLASSES = 5,
    TEXT_MAX = 2048
};

static double tolerance = 1e-4;

static tr_comm *comm;
static int node_ranks; // 0: as they are
static const char *algorithm = "auto";

enum { DIVIDING, RAGGED, MASKED, DROPOUT, KINDS };
static const char *const kind_names[] = {"dividing", "ragged", "masked", "dropout"};

enum { GPT2, MLP, OWN };
static const char *const architecture_names[] = {"GPT-2", "MLP", "own model"};

// Everything that a run is, but for how its batch is cut.
typedef struct world {
    int architecture, kind;
    const char *optimizer; // NULL: one that goes with the model
    const char *precision; // "bf16", "fp16"; NULL: f32
    const char *sums;      // of gradients; NULL: f32
    const char *freeze;    // NULL: nothing
    int64_t batch;         // T
    samples train, validation;
    own_model own;
} world;

typedef struct cut {
    int64_t ranks; // 1: this process alone
    int64_t micro, wave;
    int stage, recomputed;
    bool overlap, reproducible;
    int slices;   // of the vocabulary; 0: 1
    bool offload; // the optimizer is on the host
} cut;

typedef struct outcome {
    snapshot start, end;
    tr_step_result results[STEPS];
    tr_evaluation evaluation;
} outcome;

// ---- what is trained

static void print_model(const world *w, char text[512]) {
    double dropout = w->kind == DROPOUT ? 0.1 : 0;
    if (w->architecture == GPT2) {
        snprintf(
            text, 512,
            "\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, "
            "\"n_head\": 4, \"n_positions\": 9, \"vocab_size\": %d, "
            "\"resid_pdrop\": %g, \"embd_pdrop\": %g, \"attn_pdrop\": %g},",
            VOCABULARY, dropout, dropout, dropout);
    } else {
        snprintf(text, 512,
                 "\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": "
                 "[7, 61, 83, 5]},");
    }
}

// eps: Adam moves an element whose gradient is nearly nothing by what its rounding
// says.
static const char *optimizer_of(const world *w) {
    bool adam = w->architecture != MLP || w->kind != RAGGED;
    if (w->optimizer) {
        return w->optimizer;
    }
    return adam ? "{\"type\": \"AdamW\", \"params\": {\"lr\": 4e-3, "
                  "\"weight_decay\": 0.1, \"eps\": 1e-6}}"
                : "{\"type\": \"SGD\", \"params\": {\"lr\": 4e-3, "
                  "\"momentum\": 0.9}}";
}

static void print_run(const world *w, const cut *c, char text[TEXT_MAX]) {
    char model[512] = "";
    if (w->architecture != OWN) {
        print_model(w, model);
    }
    snprintf(text, TEXT_MAX,
             "{%s \"freeze\": %s, \"%s\": {\"enabled\": %s}, \"data_types\": "
             "{\"grad_accum_dtype\": \"%s\"}, \"steps\": %d, \"seed\": 5, "
             "\"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": %d, "
             "\"threads\": 1, \"reproducible\": %s, \"vocabulary_slices\": %d, "
             "\"ranks_per_node\": %s, \"exchange_algorithm\": \"%s\"}, "
             "\"zero_optimization\": {\"stage\": "
             "%d, \"overlap_comm\": %s, \"offload_optimizer\": {\"device\": \"%s\"}}, "
             "\"activation_checkpointing\": "
             "{\"number_checkpoints\": %d}, \"gradient_clipping\": 0.3, \"optimizer\": "
             "%s, \"out\": \"unused\"}",
             model, w->freeze ? w->freeze : "[]", w->precision ? w->precision : "bf16",
             w->precision ? "true" : "false", w->sums ? w->sums : "fp32", STEPS,
             (int)w->batch, (int)c->micro, (int)c->wave,
             c->reproducible ? "true" : "false", c->slices ? c->slices : 1,
             node_ranks == 2 ? "2" : "\"auto\"", algorithm, c->stage,
             c->overlap ? "true" : "false", c->offload ? "cpu" : "none", c->recomputed,
             optimizer_of(w));
}

static void make_samples(const world *w, int64_t count, uint64_t seed, samples *s) {
    if (w->architecture == GPT2) {
        samples_tokens(s, count, 9, VOCABULARY, seed);
    } else if (w->architecture == MLP) {
        samples_features(s, count, FEATURES, CLASSES, seed);
    } else {
        samples_features(s, count, OWN_FEATURES, OWN_CLASSES, seed);
    }
}

// Three micro-batches for each rank, or fewer for some; data sets that end in the
// middle of a batch, so that some ranks have nothing of it; targets missing here and
// there, and all of one rank's.
static void world_make(world *w, int architecture, int kind) {
    int64_t full = 3 * MICRO * tr_comm_ranks(comm);
    *w = (world){.architecture = architecture};
    w->kind = kind;
    w->batch = kind == DIVIDING || kind == MASKED ? full : full - 2 * MICRO - 1;
    int64_t count = kind == DIVIDING ? 2 * w->batch : 2 * w->batch + 1;
    make_samples(w, count, 11 + (uint64_t)kind, &w->train);
    make_samples(w, 2 * MICRO * tr_comm_ranks(comm) + 1, 3, &w->validation);
    if (kind == MASKED) {
        samples_mask_some(&w->train, 3, 9);
        samples_mask(&w->train, 0, 3 * MICRO);
        samples_mask_some(&w->validation, 3, 10);
    }
    own_model_make(&w->own, true, kind == DROPOUT ? 0.1f : 0);
}

static void world_free(world *w) {
    samples_free(&w->train);
    samples_free(&w->validation);
}

// ---- one run

static void open_trial(const world *w, const cut *c, trial *t) {
    char text[TEXT_MAX];
    print_run(w, c, text);
    run_options options = {.text = text,
                           .own_train = w->train.dataset,
                           .own_validation = w->validation.dataset,
                           .comm = c->ranks > 1 ? comm : NULL,
                           .resume = "never"};
    if (w->architecture == OWN) {
        options.own_model = &w->own.model;
    }
    trial_open(t, &options);
}

// What ranks send for the update: nothing of it in a step that is skipped.
static int64_t sent_for_update(const tr_plan *plan, tr_comm_kind kind) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_transfer transfer;
    int64_t bytes = 0;
    for (size_t i = tr__sequence_update(train); i < train->count; i++) {
        if (tr__step_transfer(plan, &train->steps[i], &transfer) &&
            transfer.kind == kind) {
            bytes += tr__transfer_sent(&transfer);
        }
    }
    return bytes;
}

// The bytes of a step are those of the plan, and nothing is allocated in it. (In
// reproducible mode one that has to be run again reads its data again.)
static void one_step(trial *t, const char *what, tr_step_result *result) {
    const tr_traffic *planned = &t->plan->traffic;
    tr_comm_totals before = tr__comm_totals(comm);
    int64_t calls = tr__memory_calls();
    trial_steps(t, 1, result);
    assert_true(t->plan->request.reproducible || tr__memory_calls() == calls);
    tr_comm_totals after = tr__comm_totals(comm);
    int64_t gathered = after.gather_bytes - before.gather_bytes;
    int64_t reduced = after.reduce_bytes - before.reduce_bytes;
    int64_t gathers = planned->gather, reduces = planned->reduce;
    if (result->skipped) {
        gathers -= sent_for_update(t->plan, TR_COMM_GATHER);
        reduces -= sent_for_update(t->plan, TR_COMM_REDUCE);
    }
    if (gathered != gathers || reduced != reduces) {
        fail_msg("%s: gathered %lld of %lld bytes, reduced %lld of %lld", what,
                 (long long)gathered, (long long)gathers, (long long)reduced,
                 (long long)reduces);
    }
    if (!result->skipped) {
        assert_int_equal(after.between_bytes - before.between_bytes, planned->between);
    }
}

// What a rank keeps whole is the same as what all ranks' parts make.
static void check_copies(trial *t, const snapshot *whole) {
    tr_error err = {0};
    trial_ok(tr_engine_refresh(t->engine, &err), &err);
    for (size_t i = 0; i < whole->count; i++) {
        const float *copy =
            tr_engine_parameter(t->engine, whole->tensors[i].name, NULL);
        // In 16 bits, master weights are sharded from stage 1 on.
        int most = t->plan->request.compute == TR_F32 ? 2 : 0;
        bool whole_here = t->plan->request.stage <= most ||
                          tr_mesh_ranks(&t->plan->request.mesh) == 1;
        whole_here = whole_here && tr__plan_slices(t->plan) == 1 &&
                     t->plan->request.optimizer_placement == TR_SPACE_DEVICE;
        assert_true(copy || !whole_here);
        if (copy) {
            assert_memory_equal(copy, whole->tensors[i].part[0],
                                (size_t)whole->tensors[i].count * sizeof(float));
        }
    }
}

// Every rank has found the same numbers.
static void check_agreed(const outcome *o) {
    double own[2 * STEPS + 1], first[2 * STEPS + 1];
    tr_error err = {0};
    for (int s = 0; s < STEPS; s++) {
        own[2 * s] = o->results[s].loss;
        own[2 * s + 1] = o->results[s].grad_norm;
    }
    own[2 * STEPS] = o->evaluation.loss;
    memcpy(first, own, sizeof own);
    trial_ok(tr__comm_broadcast(comm, 0, first, sizeof first, &err), &err);
    assert_memory_equal(own, first, sizeof own);
}

static void outcome_make(const world *w, const cut *c, const char *what, outcome *o) {
    tr_error err = {0};
    trial t;
    open_trial(w, c, &t);
    snapshot_gather(&o->start, &t);
    for (int s = 0; s < STEPS; s++) {
        one_step(&t, what, &o->results[s]);
    }
    o->evaluation.size = sizeof o->evaluation;
    trial_ok(tr_engine_evaluate(t.engine, 0, &o->evaluation, &err), &err);
    snapshot_gather(&o->end, &t);
    check_copies(&t, &o->end);
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_close(&t);
    if (c->ranks > 1) {
        check_agreed(o);
    }
}

static void outcome_free(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->end);
}

// ---- comparing

static bool near(double a, double b, double share) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= share * fabs(b);
}

static void check_close(const world *w, const outcome *o, const outcome *uncut,
                        const char *what) {
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *a = &o->results[s], *b = &uncut->results[s];
        if (!near(a->loss, b->loss, tolerance / 10) ||
            !near(a->grad_norm, b->grad_norm, tolerance)) {
            fail_msg("%s: step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g",
                     what, s + 1, a->loss, b->loss, a->grad_norm, b->grad_norm);
        }
        assert_true(a->targets == b->targets && a->samples == b->samples);
        assert_true(a->epoch == b->epoch && a->skipped == b->skipped);
    }
    if (w->architecture != OWN) { // whose evaluation has the mean of a micro-batch
        assert_true(near(o->evaluation.loss, uncut->evaluation.loss, tolerance));
    }
    snapshot_assert_same(&o->start, &uncut->start);
    snapshot_assert_close(&uncut->start, &uncut->end, &o->end, tolerance, what);
}

static void check_same(const outcome *o, const outcome *alone) {
    snapshot_assert_same(&o->end, &alone->end);
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *a = &o->results[s], *b = &alone->results[s];
        assert_memory_equal(&a->loss, &b->loss, sizeof(double));
        assert_memory_equal(&a->grad_norm, &b->grad_norm, sizeof(double));
    }
    assert_memory_equal(&o->evaluation.loss, &alone->evaluation.loss, sizeof(double));
}

static void print_cut(const world *w, const cut *c, char text[256]) {
    snprintf(text, 256,
             "%s, %s%s: T %d, %d ranks, micro-batch %d, stage %d, wave %d, recomputed "
             "%d, %d "
             "slices%s%s%s",
             architecture_names[w->architecture], kind_names[w->kind],
             w->optimizer ? w->optimizer : "", (int)w->batch, (int)c->ranks,
             (int)c->micro, c->stage, (int)c->wave, c->recomputed, c->slices,
             c->overlap ? "" : ", no overlap", c->reproducible ? ", reproducible" : "",
             c->offload ? ", offload" : "");
}

static void run_cut(const world *w, const cut *c, const outcome *uncut,
                    const outcome *alone) {
    char what[256];
    outcome o;
    print_cut(w, c, what);
    outcome_make(w, c, what, &o);
    check_close(w, &o, uncut, what);
    if (c->reproducible && alone) {
        check_same(&o, alone);
    }
    outcome_free(&o);
}

// All stages and waves. Recomputation and overlap change along with them.
static void run_cuts(const world *w, bool reproducible, int slices,
                     const outcome *uncut, const outcome *alone) {
    int64_t ranks = tr_comm_ranks(comm);
    int64_t g = (w->batch + MICRO * ranks - 1) / (MICRO * ranks);
    const int64_t waves[] = {1, 2, g};
    for (int i = 0; i < 12; i++) {
        int64_t wave = waves[i % 3];
        bool again = i % 3 == 2 && g <= 2;
        bool forced = w->architecture == OWN && wave != g; // to g
        cut c = {.ranks = ranks,
                 .micro = MICRO,
                 .wave = wave,
                 .stage = i / 3,
                 .recomputed = i % 4,
                 .overlap = i % 5 != 0,
                 .reproducible = reproducible,
                 .slices = slices};
        if (wave <= g && !again && !forced) {
            run_cut(w, &c, uncut, alone);
        }
    }
}

// Against the uncut batch, and in reproducible mode against one process, with as many
// slices.
static void run_slices(const world *w, int slices) {
    cut whole = {
        .ranks = 1, .micro = w->batch, .wave = 1, .overlap = true, .slices = slices};
    cut one = {
        .ranks = 1, .micro = MICRO, .wave = 1, .reproducible = true, .slices = slices};
    outcome uncut, alone;
    outcome_make(w, &whole, "uncut", &uncut);
    run_cuts(w, false, slices, &uncut, NULL);
    if (w->architecture != OWN) { // a mean over the batch is no sum of integers
        outcome_make(w, &one, "alone", &alone);
        run_cuts(w, true, slices, &uncut, &alone);
        outcome_free(&alone);
    }
    outcome_free(&uncut);
}

static void run_world(int architecture, int kind) {
    world w = {.optimizer = NULL};
    world_make(&w, architecture, kind);
    run_slices(&w, 1);
    if (architecture == GPT2 && kind % 2) {
        run_slices(&w, kind == RAGGED ? 7 : 3);
    }
    world_free(&w);
}

static void gpt2(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        run_world(GPT2, k);
    }
}

static void mlp(void **state) {
    (void)state;
    for (int k = 0; k < DROPOUT; k++) {
        run_world(MLP, k);
    }
}

static void batch_mean(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        run_world(OWN, k);
    }
}

// ---- optimizers that need the norms of whole tensors

// A few cuts, each of which is otherwise in several ways.
static void run_few(const world *w, int slices) {
    int64_t ranks = tr_comm_ranks(comm);
    int64_t g = (w->batch + MICRO * ranks - 1) / (MICRO * ranks);
    const cut cuts[] = {
        {ranks, MICRO, 1, 0, 0, true, false, slices, false},
        {ranks, MICRO, g, 1, 1, false, false, slices, slices == 1},
        {ranks, MICRO, 1, 2, 0, true, true, slices, false},
        {ranks, MICRO, g, 3, 1, true, true, slices, true},
        {ranks, MICRO, g, 0, 0, true, true, slices, false},
    };
    cut whole = {
        .ranks = 1, .micro = w->batch, .wave = 1, .overlap = true, .slices = slices};
    cut one = {
        .ranks = 1, .micro = MICRO, .wave = 1, .reproducible = true, .slices = slices};
    outcome uncut, alone;
    outcome_make(w, &whole, "uncut", &uncut);
    outcome_make(w, &one, "alone", &alone);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        run_cut(w, &cuts[i], &uncut, &alone);
    }
    outcome_free(&alone);
    outcome_free(&uncut);
}

static void run_adapting(int architecture, int kind, const char *optimizer,
                         int slices) {
    world w;
    world_make(&w, architecture, kind);
    w.optimizer = optimizer;
    run_few(&w, slices);
    world_free(&w);
}

// The key bias of GPT-2, noise that LAMB enlarges, would be in a norm but for
// exclude_1d.
static void lamb(void **state) {
    (void)state;
    run_adapting(GPT2, RAGGED,
                 "{\"type\": \"Lamb\", \"params\": {\"lr\": 1e-2, "
                 "\"weight_decay\": 0.1, \"exclude_1d\": true}, \"groups\": "
                 "[{\"match\": \"*.bias\", \"weight_decay\": 0}]}",
                 3);
    run_adapting(MLP, MASKED,
                 "{\"type\": \"Lamb\", \"params\": {\"lr\": 1e-2, "
                 "\"weight_decay\": 0.1, \"form\": \"paper\"}}",
                 1);
}

static void lars(void **state) {
    (void)state;
    run_adapting(GPT2, DIVIDING,
                 "{\"type\": \"LARS\", \"params\": {\"lr\": 2, \"weight_decay\": "
                 "0.01, \"nesterov\": true}}",
                 1);
    run_adapting(MLP, RAGGED,
                 "{\"type\": \"LARS\", \"params\": {\"lr\": 2, \"momentum\": 0, "
                 "\"exclude_1d\": false}}",
                 1);
}

// ---- 16 bits

// Rounding makes other cuts differ by more: each to its own tolerance.
static void run_half(int architecture, int kind, const char *precision, double share,
                     int slices) {
    world w;
    world_make(&w, architecture, kind);
    w.precision = precision;
    tolerance = share;
    run_few(&w, slices);
    tolerance = 1e-4;
    world_free(&w);
}

static void bf16(void **state) {
    (void)state;
    run_half(GPT2, RAGGED, "bf16", 0.01, 1);
    run_half(GPT2, DROPOUT, "bf16", 0.01, 3);
    run_half(MLP, MASKED, "bf16", 0.01, 1);
}

static void fp16(void **state) {
    (void)state;
    run_half(GPT2, DIVIDING, "fp16", 0.002, 1);
    run_half(MLP, RAGGED, "fp16", 0.002, 1);
}

// Where the largest element lies at the edge of a scale, the last bit of a product
// gives the tensor another scale, and small elements are rounded otherwise: with
// AVX-512 an uncut step is 0.075 from all cuts of it, which agree. With AVX2 none is
// beyond 0.02.
static void fp8(void **state) {
    (void)state;
    run_half(GPT2, RAGGED, "fp8", 0.02, 1);
    run_half(GPT2, MASKED, "fp8", 0.1, 3);
}

// ---- sums of 16 bits

static const char sgd[] =
    "{\"type\": \"SGD\", \"params\": {\"lr\": 0.05, \"momentum\": 0.9}}";

// Near the uncut batch with f32 sums, to about twice what was met. Adam moves small
// elements as far as others, wherever the rounding of their terms says. optimizer:
// NULL: one that goes with the model.
static void run_sums(int architecture, int kind, const char *sums,
                     const char *optimizer, double share, int slices) {
    world w;
    cut whole = {.ranks = 1, .wave = 1, .overlap = true, .slices = slices};
    outcome uncut;
    world_make(&w, architecture, kind);
    w.optimizer = optimizer;
    w.precision = strcmp(sums, "fp16") == 0 ? sums : NULL; // for its loss scale
    whole.micro = w.batch;
    outcome_make(&w, &whole, "uncut", &uncut);
    w.sums = sums;
    tolerance = share;
    run_cuts(&w, false, slices, &uncut, NULL);
    tolerance = 1e-4;
    outcome_free(&uncut);
    world_free(&w);
}

static void bf16_sums(void **state) {
    (void)state;
    run_sums(GPT2, RAGGED, "bf16", sgd, 0.03, 1);
    run_sums(GPT2, MASKED, "bf16", NULL, 0.15, 3);
    run_sums(MLP, DIVIDING, "bf16", sgd, 0.03, 1);
    run_sums(OWN, DROPOUT, "bf16", sgd, 0.03, 1);
}

static void fp16_sums(void **state) {
    (void)state;
    run_sums(GPT2, DROPOUT, "fp16", sgd, 0.005, 1);
    run_sums(MLP, RAGGED, "fp16", sgd, 0.005, 1);
}

// ---- frozen parameters

static void run_frozen(int architecture, int kind, const char *freeze,
                       const char *optimizer, int slices) {
    world w;
    world_make(&w, architecture, kind);
    w.freeze = freeze;
    w.optimizer = optimizer;
    run_few(&w, slices);
    world_free(&w);
}

static void frozen(void **state) {
    (void)state;
    run_frozen(GPT2, RAGGED, "[\"*w?e*\", \"*.h.0.*\"]", NULL, 1);
    run_frozen(GPT2, MASKED, "[\"*.h.1.*\", \"*ln_1*\"]", NULL, 3);
    run_frozen(GPT2, DROPOUT, "[\"*wte*\", \"*.bias\"]",
               "{\"type\": \"Lamb\", \"params\": {\"lr\": 1e-2}}", 3);
    run_frozen(MLP, RAGGED, "\"*.0.*\"", NULL, 1);
    run_frozen(MLP, DIVIDING, "\"*.weight\"",
               "{\"type\": \"LARS\", \"params\": {\"lr\": 2, \"exclude_1d\": false}}",
               1);
}

static int run(const char *which) {
    const struct CMUnitTest still[] = {
        cmocka_unit_test(frozen),
    };
    const struct CMUnitTest sums[] = {
        cmocka_unit_test(bf16_sums),
        cmocka_unit_test(fp16_sums),
    };
    const struct CMUnitTest half[] = {
        cmocka_unit_test(bf16),
        cmocka_unit_test(fp16),
        cmocka_unit_test(fp8),
    };
    const struct CMUnitTest adapting[] = {
        cmocka_unit_test(lamb),
        cmocka_unit_test(lars),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2),
        cmocka_unit_test(mlp),
        cmocka_unit_test(batch_mean),
    };
    const struct CMUnitTest nodes[] = {
        cmocka_unit_test(mlp),
        cmocka_unit_test(lamb),
        cmocka_unit_test(bf16_sums),
    };
    bool named = strcmp(which, "ring") == 0 || strcmp(which, "tree") == 0;
    if (named || strcmp(which, "nodes") == 0) {
        node_ranks = 2;
        algorithm = named ? which : algorithm;
        return cmocka_run_group_tests(nodes, NULL, NULL);
    }
    if (strcmp(which, "adapting") == 0) {
        return cmocka_run_group_tests(adapting, NULL, NULL);
    }
    if (strcmp(which, "frozen") == 0) {
        return cmocka_run_group_tests(still, NULL, NULL);
    }
    if (strcmp(which, "sums") == 0) {
        return cmocka_run_group_tests(sums, NULL, NULL);
    }
    return strcmp(which, "half") == 0 ? cmocka_run_group_tests(half, NULL, NULL)
                                      : cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
