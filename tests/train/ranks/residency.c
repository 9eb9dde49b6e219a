// Run on W ranks: wherever states, gradients and parameters live, at every stage, the
// update has the bits of the resident one, and each step moves the bytes of the plan.
#include "exec/walk.h"
#include "on_ranks.h"
#include "train/reading.h"
#include "train/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, MICRO = 2, POSITIONS = 9, VOCABULARY = 61, TEXT_MAX = 2048 };

static tr_comm *comm;

typedef struct cut {
    int stage;
    const char *optimizer, *params;
    double ratio;   // of the optimizer goes; 0: all
    bool gradients; // on NVMe
    bool overlap, reproducible;
    bool defers; // updates are left to the next step
    bool beside; // the host's stream has a thread
    bool half;
    bool reads;       // tensors by their names, in the end
    const char *sums; // of gradients
    const char *optimizer_type;
    const char *states; // their type; NULL: f32
} cut;

static void print_run(const cut *c, int64_t batch, char text[TEXT_MAX]) {
    snprintf(
        text, TEXT_MAX,
        "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, "
        "\"n_head\": 2, \"n_positions\": %d, \"vocab_size\": %d}, \"steps\": %d, "
        "\"seed\": 5, \"bf16\": {\"enabled\": %s}, \"data_types\": "
        "{\"grad_accum_dtype\": \"%s\"}, \"train_batch_size\": %d, "
        "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": 2, "
        "\"threads\": 1, \"reproducible\": %s}, \"zero_optimization\": {\"stage\": "
        "%d, \"overlap_comm\": %s, \"offload_optimizer\": {\"device\": \"%s\", "
        "\"ratio\": %g}, "
        "\"offload_param\": {\"device\": \"%s\"}}, \"memory\": {\"nvme\": "
        "{\"path\": \"/tmp\", \"gradients\": %s}}, \"gradient_clipping\": 0.3, "
        "\"optimizer\": {\"type\": \"%s\"%s%s%s}, \"out\": \"unused\"}",
        POSITIONS, VOCABULARY, STEPS, c->half ? "true" : "false", c->sums, (int)batch,
        MICRO, c->reproducible ? "true" : "false", c->stage,
        c->overlap ? "true" : "false", c->optimizer, c->ratio > 0 ? c->ratio : 1,
        c->params, c->gradients ? "true" : "false", c->optimizer_type,
        c->states ? ", \"params\": {\"state_dtype\": \"" : "",
        c->states ? c->states : "", c->states ? "\"}" : "");
}

static int64_t stored(const trial *t) {
    tr_copy_engine *copy_engine = t->engine->executor->copy_engine[TR_STREAM_NVME];
    tr_copy_engine_totals totals = {0};
    if (copy_engine) {
        totals = tr__copy_engine_totals(copy_engine);
    }
    return totals.read + totals.written;
}

static void run_cut(const cut *c, samples *data, int64_t batch, snapshot *end,
                    tr_step_result results[STEPS]) {
    char text[TEXT_MAX];
    trial t;
    print_run(c, batch, text);
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .own_validation = data->dataset,
                           .comm = comm,
                           .resume = "never"};
    trial_open(&t, &options);
    t.engine->defers = c->defers;
    if (c->beside) {
        tr_error err = {0};
        trial_ok(tr__executor_host_beside(t.engine->executor, &err), &err);
    }
    for (int s = 0; s < STEPS; s++) {
        tr_error err = {0};
        tr_evaluation evaluation = TR_EVALUATION_INIT;
        int64_t before = stored(&t);
        trial_steps(&t, 1, &results[s]);
        int64_t moved = stored(&t) - before;
        bool known = !c->reproducible && !c->defers && !results[s].skipped;
        if (known && moved != t.plan->traffic.nvme) {
            fail_msg("stage %d, %s, %s: %lld bytes of NVMe, not %lld", c->stage,
                     c->optimizer, c->params, (long long)moved,
                     (long long)t.plan->traffic.nvme);
        }
        if (s > 0) {
            trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
        }
    }
    const tr_step_result *last = &results[STEPS - 1];
    if (c->reads) {
        bool exact = strcmp(c->sums, "fp32") == 0;
        assert_false(last->skipped);
        reading_check(&t, last->grad_norm, exact ? 1e-5 : 1e-2);
    }
    snapshot_gather(end, &t);
    trial_close(&t);
}

static void check_states(int stage, bool reproducible, bool half, const char *sums,
                         const char *type, const char *states) {
    static const char *const places[] = {"none", "cpu", "nvme"};
    int64_t batch = 2 * MICRO * tr_comm_ranks(comm) - 1;
    cut resident = {.stage = stage,
                    .optimizer = "none",
                    .params = "none",
                    .overlap = true,
                    .reproducible = reproducible,
                    .half = half,
                    .sums = sums,
                    .optimizer_type = type,
                    .states = states};
    tr_step_result want[STEPS], got[STEPS];
    snapshot there, here;
    samples data;
    samples_tokens(&data, 2 * batch + 1, POSITIONS, VOCABULARY, 3);
    run_cut(&resident, &data, batch, &there, want);
    for (int k = 0; k < 10; k++) {
        // Optimizer on the host, on NVMe, and here; parameters in each other place;
        // some of the optimizer on the host, parameters here or there.
        int params = k < 6 ? k % 3 : k < 8 ? k - 5 : k - 8;
        cut c = {.stage = stage,
                 .optimizer = places[k < 8 ? (1 + k / 3) % 3 : 1],
                 .ratio = k < 8 ? 0 : 0.5,
                 .params = places[params],
                 .gradients = k == 4 || (k == 3 && stage != 1),
                 .overlap = (k + stage) % 3 != 0,
                 .reproducible = reproducible,
                 .defers = (k + stage) % 2 == 0 && strcmp(type, "Muon") != 0,
                 .beside = (k + stage) / 2 % 2 == 0,
                 .half = half,
                 // What is written into a state of few bits is rounded.
                 .reads = (k + stage / 2) % 2 == 0 && !states &&
                          strcmp(type, "Muon") != 0, // whose tensors differ in parts
                 .sums = sums,
                 .optimizer_type = type,
                 .states = states};
        bool nvme = strcmp(c.optimizer, "nvme") == 0 || strcmp(c.params, "nvme") == 0;
        if ((params > 0 && stage < 3) || (nvme && strcmp(type, "Muon") == 0)) {
            continue;
        }
        run_cut(&c, &data, batch, &here, got);
        snapshot_assert_same(&there, &here);
        for (int s = 0; s < STEPS; s++) {
            assert_true(want[s].loss == got[s].loss);
            assert_true(want[s].grad_norm == got[s].grad_norm);
        }
        snapshot_free(&here);
    }
    snapshot_free(&there);
    samples_free(&data);
}

static void check_sums(int stage, bool reproducible, bool half, const char *sums,
                       const char *type) {
    check_states(stage, reproducible, half, sums, type, NULL);
}

static void check_stage(int stage, bool reproducible, bool half, const char *type) {
    check_sums(stage, reproducible, half, "fp32", type);
}

static void every_stage(void **state) {
    (void)state;
    for (int stage = 0; stage <= 3; stage++) {
        check_stage(stage, false, false, "AdamW");
    }
}

static void reproducibly(void **state) {
    (void)state;
    check_stage(1, true, false, "AdamW");
    check_stage(3, true, false, "AdamW");
}

static void in_16_bits(void **state) {
    (void)state;
    check_stage(1, false, true, "AdamW");
    check_stage(3, false, true, "AdamW");
}

static void with_sums_of_16_bits(void **state) {
    (void)state;
    check_sums(0, false, false, "bf16", "AdamW");
    check_sums(1, false, true, "bf16", "AdamW");
    check_sums(2, false, false, "fp16", "AdamW");
    check_sums(3, false, true, "bf16", "Lamb");
}

// Each tensor's norms are of what all ranks have measured.
static void with_norms(void **state) {
    (void)state;
    check_stage(0, false, false, "Lamb");
    check_stage(1, true, false, "Lamb");
    check_stage(2, false, true, "LARS");
    check_stage(3, false, false, "Lamb");
}

// A block of 8 bits is one rank's, and its scale with it.
static void with_states_of_few_bits(void **state) {
    (void)state;
    check_states(0, false, false, "fp32", "AdamW", "int8");
    check_states(1, true, false, "fp32", "AdamW", "bf16");
    check_states(2, false, true, "bf16", "AdamW", "int8");
    check_states(3, false, false, "fp32", "AdamW", "int8");
}

// Whole matrices, whoever has parts of them.
static void with_matrices(void **state) {
    (void)state;
    check_stage(0, false, false, "Muon");
    check_stage(1, true, false, "Muon");
    check_stage(2, false, true, "Muon");
    check_stage(3, false, false, "Muon");
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage),   cmocka_unit_test(reproducibly),
        cmocka_unit_test(in_16_bits),    cmocka_unit_test(with_sums_of_16_bits),
        cmocka_unit_test(with_norms),    cmocka_unit_test(with_states_of_few_bits),
        cmocka_unit_test(with_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
