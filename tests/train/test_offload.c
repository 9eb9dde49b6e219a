// Labels: guard
// Residency: wherever optimizer state and parameters live, the update has the same
// bits, and each arena is as large as its ledger says.
#include "exec/walk.h"
#include "samples.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 4, TEXT_MAX = 2048 };

typedef struct world {
    bool tokens;
    int64_t batch, micro;
    double dropout;
    bool reproducible;
    const char *optimizer, *precision; // precision NULL: f32
    samples data;
} world;

typedef struct homes {
    const char *optimizer, *params;
    int64_t wave, recomputed;
    bool overlap;
    bool gradients; // on NVMe
} homes;

// Whatever else is away, each run makes again what one of these says.
static const char *const recompute[] = {
    "\"auto\"", "\"none\"", "[\"norm\", \"attention\", \"product\"]", "\"unit\""};
enum { RECOMPUTE = sizeof recompute / sizeof *recompute };

static bool is_resident(const homes *h) {
    return strcmp(h->optimizer, "none") == 0 && strcmp(h->params, "none") == 0;
}

// One of them for each kind of run, and the resident one keeps everything.
static const char *recompute_of(const homes *h) {
    return recompute[is_resident(h) ? 1 : (int)(h->wave + h->recomputed) % RECOMPUTE];
}

static void print_run(const world *w, const homes *h, char text[TEXT_MAX]) {
    char model[512];
    if (w->tokens) {
        snprintf(model, sizeof model,
                 "{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, "
                 "\"n_head\": 2, \"n_positions\": 9, \"vocab_size\": 61, "
                 "\"resid_pdrop\": %g, \"embd_pdrop\": 0, \"attn_pdrop\": 0}",
                 w->dropout);
    } else {
        snprintf(model, sizeof model,
                 "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 19, 33, 5]}");
    }
    snprintf(
        text, TEXT_MAX,
        "{\"model\": %s, %s\"steps\": %d, \"seed\": 3, \"train_batch_size\": %d, "
        "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": %d, "
        "\"reproducible\": %s, \"threads\": 2, \"recompute\": %s}, "
        "\"zero_optimization\": {"
        "\"overlap_comm\": %s, \"offload_optimizer\": {\"device\": \"%s\"}, "
        "\"offload_param\": {\"device\": \"%s\"}}, \"memory\": {\"nvme\": "
        "{\"path\": \"/tmp\", \"gradients\": %s}}, \"activation_checkpointing\": "
        "{\"number_checkpoints\": %d, \"cpu_checkpointing\": %s, \"cpu_saved\": %s}, "
        "\"optimizer\": %s, \"out\": \"unused\"}",
        model, w->precision ? w->precision : "", STEPS, (int)w->batch, (int)w->micro,
        (int)h->wave, w->reproducible ? "true" : "false", recompute_of(h),
        h->overlap ? "true" : "false", h->optimizer, h->params,
        h->gradients ? "true" : "false", (int)h->recomputed,
        h->recomputed ? "true" : "false", is_resident(h) ? "false" : "true",
        w->optimizer);
}

static int64_t carried(const trial *t, tr_stream stream) {
    const tr_executor *ex = t->engine->executor;
    tr_copy_engine *copy_engine = ex->copy_engine[stream];
    tr_copy_engine_totals totals = {0};
    if (ex->queue[stream]) {
        return ex->backend->queues->copied(ex->queue[stream]);
    }
    if (copy_engine) {
        totals = tr__copy_engine_totals(copy_engine);
    }
    return totals.copied + totals.read + totals.written;
}

static int64_t copies(const trial *t) {
    return carried(t, TR_STREAM_COPY) + carried(t, TR_STREAM_COPY_OUT);
}

// The bytes of a step are those of the plan. (In reproducible mode the first ones may
// be run again; a skipped one has no update; one that is left to the next step is
// there.)
static void one_step(trial *t, const world *w, tr_step_result *result) {
    int64_t copied = copies(t), moved = carried(t, TR_STREAM_NVME);
    trial_steps(t, 1, result);
    if (!w->reproducible && !result->skipped && !t->engine->defers) {
        assert_int_equal(copies(t) - copied, t->plan->traffic.device_host);
        assert_int_equal(carried(t, TR_STREAM_NVME) - moved, t->plan->traffic.nvme);
    }
}

// How it is done: updates are left to the next step; the host's stream has a thread.
typedef struct way {
    bool defers, beside;
} way;

// Where the host's stream has a thread, plans with the optimizer on the host leave
// updates of f32 sums, all that need no norms of tensors.
static bool leaves(const world *w, const homes *h, way how) {
    bool norms = strstr(w->optimizer, "Lamb") || strstr(w->optimizer, "LARS");
    return how.defers && how.beside && h->overlap && !w->reproducible && !norms &&
           strcmp(h->optimizer, "cpu") == 0;
}

static void run(const world *w, const homes *h, way how, snapshot *end,
                tr_step_result results[STEPS], tr_evaluation *evaluation) {
    char text[TEXT_MAX];
    tr_error err = {0};
    trial t;
    print_run(w, h, text);
    trial_open_text(&t, text, w->data.dataset, w->data.dataset);
    t.engine->defers = how.defers;
    if (how.beside) {
        trial_ok(tr__executor_host_beside(t.engine->executor, &err), &err);
    }
    for (int s = 0; s < STEPS - 1; s++) {
        one_step(&t, w, &results[s]);
        if (leaves(w, h, how)) {
            assert_int_equal(tr__executor_is_deferred(t.engine->executor),
                             !results[s].skipped);
        }
    }
    trial_ok(tr_engine_evaluate(t.engine, 0, evaluation, &err), &err);
    one_step(&t, w, &results[STEPS - 1]);
    trial_ok(tr__engine_settle(t.engine, &err), &err);
    snapshot_take(end, &t);
    trial_check_arenas(&t);
    trial_close(&t);
}

// A batch without a target has no loss.
static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void check_world(const world *w) {
    static const homes cases[] = {
        {"cpu", "none", 0, 0, true, false},  {"cpu", "cpu", 0, 5, true, false},
        {"cpu", "none", 0, 5, false, false}, {"cpu", "cpu", 0, 0, false, false},
        {"nvme", "none", 0, 0, true, false}, {"nvme", "cpu", 0, 5, true, true},
        {"nvme", "nvme", 0, 0, true, true},  {"cpu", "nvme", 0, 5, true, false},
        {"nvme", "none", 0, 5, false, true}, {"nvme", "none", 0, 5, true, true},
        {"nvme", "nvme", 0, 5, true, false}, {"cpu", "nvme", 0, 0, true, false},
        {"cpu", "cpu", 0, 5, true, false},   {"cpu", "none", 0, 0, true, false},
        {"none", "cpu", 0, 0, true, false},  {"none", "cpu", 0, 5, false, false},
        {"none", "nvme", 0, 0, true, false}, {"none", "nvme", 0, 5, false, false}};
    int64_t g = (w->batch + w->micro - 1) / w->micro;
    homes h = {"none", "none", g, 0, true, false};
    snapshot want, got;
    tr_step_result results[STEPS], others[STEPS];
    tr_evaluation evaluation = TR_EVALUATION_INIT, other = TR_EVALUATION_INIT;
    run(w, &h, (way){false, false}, &want, results, &evaluation);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        h = cases[k];
        bool once = !w->reproducible || h.gradients;
        h.wave = once ? g : 1 + (int64_t)k % g;
        run(w, &h, (way){k % 2 == 0, k / 2 % 2 == 0}, &got, others, &other);
        snapshot_assert_same(&want, &got);
        for (int s = 0; s < STEPS; s++) {
            if (!same(results[s].loss, others[s].loss) ||
                !same(results[s].grad_norm, others[s].grad_norm)) {
                fail_msg(
                    "case %zu, step %d: loss %.17g for %.17g, norm %.17g for %.17g", k,
                    s, others[s].loss, results[s].loss, others[s].grad_norm,
                    results[s].grad_norm);
            }
        }
        assert_true(evaluation.loss == other.loss);
        snapshot_free(&got);
    }
    snapshot_free(&want);
}

static const char adam[] = "{\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3, "
                           "\"weight_decay\": 0.1}}";
static const char sgd[] = "{\"type\": \"SGD\", \"params\": {\"lr\": 0.05}}";

static const char lamb[] = "{\"type\": \"Lamb\", \"params\": {\"lr\": 1e-3, "
                           "\"weight_decay\": 0.1}}";
static const char lars[] = "{\"type\": \"LARS\", \"params\": {\"lr\": 2}}";

static void check(world w) {
    if (w.tokens) {
        samples_tokens(&w.data, 2 * w.batch + 1, 9, 61, 5);
    } else {
        samples_features(&w.data, 2 * w.batch + 1, 7, 5, 5);
    }
    samples_mask_some(&w.data, 3, 7);
    check_world(&w);
    samples_free(&w.data);
}

static void gpt2_on_the_host(void **state) {
    (void)state;
    check((world){
        .tokens = true, .batch = 7, .micro = 2, .dropout = 0.1, .optimizer = adam});
}

static void gpt2_on_the_host_reproducibly(void **state) {
    (void)state;
    check((world){.tokens = true,
                  .batch = 5,
                  .micro = 1,
                  .reproducible = true,
                  .optimizer = adam});
}

static void mlp_on_the_host(void **state) {
    (void)state;
    check((world){.batch = 8, .micro = 3, .optimizer = adam});
    check((world){.batch = 6, .micro = 6, .optimizer = sgd});
}

static void gpt2_in_16_bits(void **state) {
    (void)state;
    // The first steps overflow, and change nothing.
    check((world){.tokens = true,
                  .batch = 5,
                  .micro = 1,
                  .optimizer = adam,
                  .precision = "\"fp16\": {\"enabled\": true, \"initial_scale_power\": "
                               "30, \"hysteresis\": 1}, "});
}

// Optimizers that need the norms of whole tensors.
static void norms_on_the_host(void **state) {
    (void)state;
    check((world){.tokens = true, .batch = 7, .micro = 2, .optimizer = lamb});
    check((world){.tokens = true,
                  .batch = 5,
                  .micro = 1,
                  .reproducible = true,
                  .optimizer = lamb});
    check((world){.batch = 8, .micro = 3, .optimizer = lars});
}

// What would change bits, or is not there, says so.
static void what_cannot_be_is_refused(void **state) {
    (void)state;
    static const struct {
        homes homes;
        const char *words;
    } cases[] = {
        {{"cpu", "none", 2, 0, true, false},
         "execution.wave is 2, but gradients go to the host"},
    };
    world w = {.tokens = true, .batch = 4, .micro = 1, .optimizer = adam};
    samples_tokens(&w.data, 9, 9, 61, 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TEXT_MAX];
        tr_error err = {0};
        tr_run *opened = NULL;
        tr_plan *plan = NULL;
        print_run(&w, &cases[i].homes, text);
        run_options options = {
            .text = text, .own_train = w.data.dataset, .resume = "never"};
        tr_status status = run_open(&options, &opened, &err);
        if (status == TR_OK) {
            status = tr_plan_make(tr_run_plan_request(opened), &plan, &err);
        }
        assert_int_equal(status, TR_USAGE);
        assert_non_null(strstr(err.message, cases[i].words));
        tr_run_destroy(opened);
    }
    samples_free(&w.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_on_the_host),
        cmocka_unit_test(gpt2_on_the_host_reproducibly),
        cmocka_unit_test(mlp_on_the_host),
        cmocka_unit_test(gpt2_in_16_bits),
        cmocka_unit_test(norms_on_the_host),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
