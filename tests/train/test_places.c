// Labels: guard
// Residency and recomputation, drawn at random: whatever lives where, and whatever is
// made again, the update has the bits of the plan that keeps all on the device, and
// each space is used up to what its ledger says.
#include "exec/walk.h"
#include "samples.h"
#include "snapshot.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORLDS = 8, PLANS = 8, STEPS = 3, TEXT_MAX = 2048, LIST_MAX = 160 };

// What decides about bits: the same for all plans that are compared.
typedef struct world {
    bool tokens, reproducible, half;
    const char *sums; // of gradients
    int64_t batch, micro, layers;
    double dropout;
    const char *optimizer;
} world;

// What decides about none.
typedef struct places {
    const char *optimizer, *params;
    double ratio;          // of the optimizer goes; 0: all
    bool gradients;        // on NVMe
    int64_t wave;          // of GPT-2 outside of reproducible mode: part of the bits
    int64_t units;         // made again whole
    int64_t classes_units; // units that the classes are of, 0: all
    bool boundaries;       // inputs of those units on the host
    bool saved;            // what the other units save, too
    bool overlap, defers;
    bool beside; // the host's stream has a thread
    char classes[LIST_MAX];
} places;

static const char *const optimizers[] = {
    "{\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3, \"weight_decay\": 0.1}}",
    "{\"type\": \"SGD\", \"params\": {\"lr\": 0.05, \"momentum\": 0.9}}",
    "{\"type\": \"Lion\", \"params\": {\"lr\": 1e-4}}",
    "{\"type\": \"Lamb\", \"params\": {\"lr\": 1e-3, \"weight_decay\": 0.1}}",
    "{\"type\": \"LARS\", \"params\": {\"lr\": 2, \"exclude_1d\": false}}"};

enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void print_run(const world *w, const places *p, char text[TEXT_MAX]) {
    char model[512];
    if (w->tokens) {
        snprintf(model, sizeof model,
                 "{\"model_type\": \"gpt2\", \"n_layer\": %d, \"n_embd\": 32, "
                 "\"n_head\": 2, \"n_positions\": 9, \"vocab_size\": 61, "
                 "\"resid_pdrop\": %g, \"embd_pdrop\": %g, \"attn_pdrop\": %g}",
                 (int)w->layers, w->dropout, w->dropout, w->dropout);
    } else {
        snprintf(model, sizeof model,
                 "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 40, %s5]}",
                 w->layers > 2 ? "33, 40, " : "");
    }
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, \"steps\": %d, \"seed\": 3, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"bf16\": {\"enabled\": %s}, "
             "\"data_types\": {\"grad_accum_dtype\": \"%s\"}, "
             "\"execution\": {\"wave\": %d, \"reproducible\": %s, \"threads\": 2, "
             "\"recompute\": [%s], \"recompute_units\": %d}, "
             "\"activation_checkpointing\": {\"number_checkpoints\": %d, "
             "\"cpu_checkpointing\": %s, \"cpu_saved\": %s}, \"zero_optimization\": {"
             "\"overlap_comm\": %s, \"offload_optimizer\": {\"device\": \"%s\", "
             "\"ratio\": %g}, "
             "\"offload_param\": {\"device\": \"%s\"}}, \"memory\": {\"nvme\": "
             "{\"path\": \"/tmp\", \"gradients\": %s}}, \"optimizer\": %s, "
             "\"out\": \"unused\"}",
             model, STEPS, (int)w->batch, (int)w->micro, w->half ? "true" : "false",
             w->sums, (int)p->wave, w->reproducible ? "true" : "false", p->classes,
             (int)p->classes_units, (int)p->units, p->boundaries ? "true" : "false",
             p->saved ? "true" : "false", p->overlap ? "true" : "false", p->optimizer,
             p->ratio > 0 ? p->ratio : 1, p->params, p->gradients ? "true" : "false",
             w->optimizer);
}

static bool chance(uint64_t *random, int64_t one_in) {
    return test_between(random, 1, one_in) == 1;
}

// sums: of a world that is not reproducible.
static world draw_world(uint64_t *random, const char *sums) {
    world w = {.tokens = !chance(random, 3),
               .reproducible = chance(random, 4),
               .half = chance(random, 3),
               .batch = test_between(random, 2, 9),
               .layers = test_between(random, 1, 3),
               .dropout = chance(random, 2) ? 0.1 : 0,
               .optimizer = optimizers[test_between(random, 0, OPTIMIZERS - 1)]};
    w.micro = test_between(random, 1, w.batch);
    w.reproducible = w.reproducible && strcmp(sums, "fp32") == 0;
    w.sums = sums;
    return w;
}

static void draw_classes(places *p, uint64_t *random) {
    static const char *const names[] = {"norm",     "activation",     "attention",
                                        "residual", "pre_activation", "product"};
    for (int i = 0; i < 6; i++) {
        size_t used = strlen(p->classes);
        if (chance(random, 2)) {
            snprintf(p->classes + used, LIST_MAX - used, "%s\"%s\"", used ? ", " : "",
                     names[i]);
        }
    }
}

static places draw_places(const world *w, uint64_t *random) {
    static const char *const homes[] = {"none", "cpu", "nvme"};
    int64_t g = (w->batch + w->micro - 1) / w->micro;
    int64_t optimizer = test_between(random, 0, 2);
    int64_t params = test_between(random, 0, 2);
    places p = {.optimizer = homes[optimizer],
                .params = homes[params],
                .gradients = optimizer == 2 && chance(random, 2),
                .units = chance(random, 2) ? test_between(random, 1, 5) : 0,
                .classes_units = test_between(random, 0, 4),
                .boundaries = chance(random, 2),
                .saved = chance(random, 2),
                .overlap = !chance(random, 4),
                .defers = chance(random, 2),
                .beside = chance(random, 2)};
    p.wave = w->reproducible && !p.gradients ? test_between(random, 1, g) : g;
    if (optimizer == 1 && params != 2 && chance(random, 2)) {
        p.ratio = 0.1 * (double)test_between(random, 1, 9);
    }
    draw_classes(&p, random);
    return p;
}

// Bytes of the file without a name that this process has open; 0: there is none.
static int64_t open_file(void) {
    int64_t bytes = 0;
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        struct stat is;
        bool plain = fstat(atoi(entry->d_name), &is) == 0 && S_ISREG(is.st_mode);
        bytes += plain && is.st_nlink == 0 ? (int64_t)is.st_size : 0;
    }
    closedir(folder);
    return bytes;
}

static void check_spaces(const trial *t, int64_t others) {
    trial_check_arenas(t);
    assert_int_equal(open_file() - others, tr_plan_ledger(t->plan)->total[2]);
}

static void run(const world *w, const places *p, const samples *data, snapshot *end,
                tr_step_result results[STEPS]) {
    char text[TEXT_MAX];
    tr_error err = {0};
    trial t;
    int64_t others = open_file();
    print_run(w, p, text);
    trial_open_text(&t, text, data->dataset, NULL);
    t.engine->defers = p->defers;
    if (p->beside) {
        trial_ok(tr__executor_host_beside(t.engine->executor, &err), &err);
    }
    trial_steps(&t, STEPS, results);
    trial_ok(tr_engine_refresh(t.engine, &err), &err);
    snapshot_take(end, &t);
    check_spaces(&t, others);
    trial_close(&t);
}

static void compare(const world *w, const places *p, const samples *data,
                    const snapshot *want, const tr_step_result results[STEPS]) {
    char text[TEXT_MAX];
    tr_step_result others[STEPS];
    snapshot got;
    print_run(w, p, text);
    run(w, p, data, &got, others);
    for (int s = 0; s < STEPS; s++) {
        if (memcmp(&others[s].loss, &results[s].loss, sizeof results[s].loss) != 0 ||
            others[s].grad_norm != results[s].grad_norm) {
            fail_msg("step %d: loss %.17g for %.17g, norm %.17g for %.17g of %s", s,
                     others[s].loss, results[s].loss, others[s].grad_norm,
                     results[s].grad_norm, text);
        }
    }
    snapshot_assert_same(want, &got);
    snapshot_free(&got);
}

static void check_world(uint64_t *random, const char *sums) {
    world w = draw_world(random, sums);
    places resident = {.optimizer = "none", .params = "none", .overlap = true};
    tr_step_result results[STEPS];
    snapshot want;
    samples data;
    resident.wave = (w.batch + w.micro - 1) / w.micro;
    snprintf(resident.classes, LIST_MAX, "\"none\"");
    if (w.tokens) {
        samples_tokens(&data, 2 * w.batch, 9, 61, 5);
    } else {
        samples_features(&data, 2 * w.batch, 7, 5, 5);
    }
    run(&w, &resident, &data, &want, results);
    for (int k = 0; k < PLANS; k++) {
        places p = draw_places(&w, random);
        compare(&w, &p, &data, &want, results);
    }
    snapshot_free(&want);
    samples_free(&data);
}

static void no_place_changes_a_bit(void **state) {
    (void)state;
    uint64_t random = 29;
    for (int i = 0; i < WORLDS; i++) {
        check_world(&random, "fp32");
    }
}

static void nor_with_sums_of_16_bits(void **state) {
    (void)state;
    uint64_t random = 31;
    for (int i = 0; i < WORLDS / 2; i++) {
        check_world(&random, i % 2 ? "fp16" : "bf16");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_place_changes_a_bit),
        cmocka_unit_test(nor_with_sums_of_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
