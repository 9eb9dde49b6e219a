// Residual networks: what PyTorch makes of a few updates, running statistics and
// evaluation included; that batch norm does not see how the batch was cut; what is kept
// where, and what is refused.
// Labels: isa
#include "plan/print/print.h"
#include "scratch.h"
#include "snapshot.h"
#include "stored.h"

#include "samples.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 5, SIDE = 8, CHANNELS = 3, CLASSES = 5, T = 64, TEXT_MAX = 2048 };

static const char weights[] = "model.safetensors";

static const char *latest(void *const *state, const char *out, char folder[PATH_MAX]) {
    return stored_latest(scratch_path(state, out), folder);
}

// ---- against PyTorch

static void check_golden(void **state, const char *name, const char *micro) {
    char path[PATH_MAX], folder[PATH_MAX], out[PATH_MAX];
    snprintf(path, sizeof path, "%s/resnets/%s", TR_TEST_DATA, name);
    assert_int_equal(chdir(path), 0);
    snprintf(out, sizeof out, "out=%s", scratch_path(state, "out"));
    const char *set[] = {out, micro, "execution.threads=2"};
    run_options options = {
        .file = "run.json", .set = set, .set_count = 3, .resume = "never"};
    json_t *expected = json_load_file("expected.json", 0, NULL);
    const json_t *losses = json_object_get(expected, "loss");
    size_t steps = json_array_size(losses);
    tr_step_result result;
    tr_evaluation evaluation;
    tr_error err = {0};
    trial t;
    assert_true(steps > 0);
    trial_open(&t, &options);
    for (size_t i = 0; i < steps; i++) {
        trial_steps(&t, 1, &result);
        double want = json_number_value(json_array_get(losses, i));
        assert_true(fabs(result.loss - want) <= 3e-5 * want);
    }
    trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
    double want = json_number_value(json_object_get(expected, "evaluated"));
    assert_true(fabs(evaluation.loss - want) <= 1e-4 * want);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_close(&t);
    // PyTorch's weights are f64; ours are rounded to f32 in each update.
    stored_assert_close("initial", "final.safetensors", latest(state, "out", folder),
                        5e-4, (double)steps * 0x1p-24);
    json_decref(expected);
}

static void small_images_as_pytorch(void **state) {
    check_golden(state, "cifar", "train_micro_batch_size_per_gpu=10");
    check_golden(state, "cifar", "train_micro_batch_size_per_gpu=3");
}

static void bottlenecks_as_pytorch(void **state) {
    check_golden(state, "bottleneck", "train_micro_batch_size_per_gpu=4");
}

static void strides_that_divide_the_image_as_pytorch(void **state) {
    check_golden(state, "even", "train_micro_batch_size_per_gpu=4");
}

// ---- cuts

typedef struct cut {
    int micro, wave;
    const char *statistics;
    const char *more, *data; // more keys of the run file; the data's, if not random
    bool exact;              // reproducible mode
    bool defers;             // updates are left to the next step, as a whole run does
} cut;

static const double rate = 0.02;
static const char random_data[] = "\"format\": \"random\", \"samples\": 181, "
                                  "\"features\": 192, \"classes\": 5";

static void print_run(const cut *c, const char *out, char text[TEXT_MAX]) {
    char wave[16] = "\"auto\"";
    if (c->wave) {
        snprintf(wave, sizeof wave, "%d", c->wave);
    }
    snprintf(text, TEXT_MAX,
             "{\"model\": {\"model_type\": \"resnet\", \"depth\": 20, \"width\": 4, "
             "\"image_size\": %d, \"num_channels\": %d, \"num_labels\": %d, "
             "\"batch_norm\": \"%s\"}, \"data\": {%s}, \"steps\": %d, \"seed\": 5, "
             "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
             "\"execution\": {\"threads\": 2, \"wave\": %s, \"reproducible\": %s}, "
             "\"gradient_clipping\": 0, \"optimizer\": {\"type\": \"SGD\", \"params\": "
             "{\"lr\": %g, \"momentum\": 0.9}}, \"out\": \"%s\"%s}",
             SIDE, CHANNELS, CLASSES, c->statistics, c->data ? c->data : random_data,
             STEPS, T, c->micro, wave, c->exact ? "true" : "false", rate, out,
             c->more ? c->more : "");
}

// Trains so many steps more and saves to folder `name`; `resume`: goes on from there.
static void train(void **state, const cut *c, const char *name, int steps,
                  bool resume) {
    char text[TEXT_MAX];
    tr_error err = {0};
    print_run(c, scratch_path(state, name), text);
    run_options options = {.text = text, .resume = resume ? "auto" : "never"};
    trial t;
    trial_open(&t, &options);
    t.engine->defers = c->defers;
    trial_steps(&t, steps, NULL);
    assert_int_equal(tr__executor_is_deferred(t.engine->executor), c->defers);
    assert_true(steps == 0 || tr_engine_arena_peak(t.engine) ==
                                  tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
}

static const cut uncut = {.micro = T, .wave = 1, .statistics = "effective_batch"};

// 181 samples in batches of 64: the third is ragged in any case.
static void cuts_change_nothing(void **state) {
    static const cut cuts[] = {
        {.micro = 16, .wave = 4, .statistics = "effective_batch"},
        {.micro = 7, .wave = 10, .statistics = "effective_batch"}};
    char start[PATH_MAX], whole[PATH_MAX], folder[PATH_MAX];
    train(state, &uncut, "uncut", STEPS, false);
    train(state, &uncut, "start", 0, false);
    latest(state, "start", start);
    latest(state, "uncut", whole);
    for (int i = 0; i < 2; i++) {
        train(state, &cuts[i], "cut", STEPS, false);
        stored_assert_close(start, whole, latest(state, "cut", folder), 1e-4, 0);
    }
}

// What is made again is made by the statistics that were saved: the same bits, of the
// running statistics too, which are brought up to date once all the same.
static void recomputed_as_kept(void **state) {
    static const char *const ways[] = {
        ", \"activation_checkpointing\": {\"number_checkpoints\": 3}",
        ", \"activation_checkpointing\": {\"number_checkpoints\": 10}"};
    cut c = {.micro = 16, .wave = 4, .statistics = "effective_batch"};
    char kept[PATH_MAX], again[PATH_MAX];
    train(state, &c, "kept", 2, false);
    latest(state, "kept", kept);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        c.more = ways[i];
        train(state, &c, "again", 2, false);
        stored_assert_same(kept, latest(state, "again", again), weights);
    }
}

// Statistics are brought up to date once, too, where updates are left to the next step
// and the last one is not.
static void on_nvme_as_here(void **state) {
    cut c = {.micro = 16, .wave = 4, .statistics = "effective_batch"};
    char here[PATH_MAX], away[PATH_MAX];
    train(state, &c, "here", 4, false);
    c.more = ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\", "
             "\"nvme_path\": \"/tmp\"}, \"offload_param\": {\"device\": \"nvme\"}}";
    for (int defers = 0; defers < 2; defers++) {
        c.defers = defers;
        train(state, &c, "away", 4, false);
        stored_assert_same(latest(state, "here", here), latest(state, "away", away),
                           weights);
    }
}

// A checkpoint carries the running statistics: a run that goes on from it ends with the
// same bits as one that was never interrupted.
static void resumed_as_whole(void **state) {
    const cut c = {.micro = 16, .wave = 4, .statistics = "effective_batch"};
    cut again = c;
    again.more = ", \"activation_checkpointing\": {\"number_checkpoints\": 5}";
    char whole[PATH_MAX], parts[PATH_MAX];
    train(state, &c, "whole", STEPS, false);
    train(state, &c, "parts", 2, false);
    train(state, &again, "parts", STEPS - 2, true);
    stored_assert_same(latest(state, "whole", whole), latest(state, "parts", parts),
                       weights);
}

// One process is all ranks: the same bits.
static void one_rank_is_all(void **state) {
    const cut all = {.micro = 7, .wave = 10, .statistics = "effective_batch"};
    const cut one = {.micro = 7, .wave = 10, .statistics = "rank_batch"};
    char want[PATH_MAX], folder[PATH_MAX];
    train(state, &all, "all", 2, false);
    train(state, &one, "one", 2, false);
    stored_assert_same(latest(state, "all", want), latest(state, "one", folder),
                       weights);
}

// In 16 bits a cut leads away no further than 16 bits do from f32 (one element that is
// rounded the other way changes all that follows it), and what no cut changes is the
// same: what is made again, and what lives elsewhere.
static void in_16_bits(void **state) {
    static const char *const formats[] = {", \"bf16\": {\"enabled\": true}",
                                          ", \"fp16\": {\"enabled\": true}"};
    static const char *const same[] = {
        ", \"activation_checkpointing\": {\"number_checkpoints\": 3}",
        ", \"zero_optimization\": {\"offload_param\": {\"device\": \"nvme\", "
        "\"nvme_path\": \"/tmp\"}}"};
    char plain[PATH_MAX], whole[PATH_MAX], parts[PATH_MAX], again[PATH_MAX], keys[256];
    train(state, &uncut, "plain", 2, false);
    latest(state, "plain", plain);
    for (int f = 0; f < 2; f++) {
        cut c = uncut;
        c.more = formats[f];
        train(state, &c, "whole", 2, false);
        c.micro = 7;
        c.wave = 10;
        train(state, &c, "parts", 2, false);
        latest(state, "whole", whole);
        latest(state, "parts", parts);
        double off = stored_distance(plain, whole);
        assert_true(off > 0 && stored_distance(whole, parts) < off);
        for (int i = 0; i < 2; i++) {
            snprintf(keys, sizeof keys, "%s%s", formats[f], same[i]);
            c.more = keys;
            train(state, &c, "again", 2, false);
            stored_assert_same(parts, latest(state, "again", again), weights);
        }
    }
}

// Fixed-point sums come to what floats come to, and what is made again has their bits.
static void reproducible_as_uncut(void **state) {
    cut c = {.micro = 7, .wave = 10, .statistics = "effective_batch", .exact = true};
    char start[PATH_MAX], whole[PATH_MAX], kept[PATH_MAX], again[PATH_MAX];
    train(state, &uncut, "start", 0, false);
    train(state, &uncut, "uncut", STEPS, false);
    train(state, &c, "kept", STEPS, false);
    latest(state, "start", start);
    latest(state, "kept", kept);
    stored_assert_close(start, latest(state, "uncut", whole), kept, 1e-4, 0);
    c.more = ", \"activation_checkpointing\": {\"number_checkpoints\": 5}, "
             "\"zero_optimization\": {\"stage\": 1, \"offload_optimizer\": "
             "{\"device\": \"cpu\"}}";
    train(state, &c, "again", STEPS, false);
    stored_assert_same(kept, latest(state, "again", again), weights);
}

// ---- statistics of micro-batches

typedef struct three {
    tr_tensor_set *set[3];
    double *v[3];
} three;

static void three_open(three *t, void **state, const char *const names[3]) {
    tr_error err = {0};
    for (int i = 0; i < 3; i++) {
        char folder[PATH_MAX];
        trial_ok(tr__tensor_set_open(latest(state, names[i], folder), &t->set[i], &err),
                 &err);
    }
}

static void three_close(three *t) {
    for (int i = 0; i < 3; i++) {
        tr__tensor_set_close(t->set[i]);
    }
}

// Each micro-batch's own statistics: any wave gives the same, and not what the
// effective batch gives. Updates are counted once for each step in any case.
static void micro_batches_alone(void **state) {
    static const char *const names[] = {"narrow", "wide", "uncut"};
    const cut narrow = {.micro = 16, .wave = 1, .statistics = "micro_batch"};
    const cut wide = {.micro = 16, .wave = 4, .statistics = "micro_batch"};
    three t;
    train(state, &narrow, names[0], STEPS, false);
    train(state, &wide, names[1], STEPS, false);
    train(state, &uncut, names[2], STEPS, false);
    three_open(&t, state, names);
    for (size_t i = 0; i < tr__tensor_set_count(t.set[0]); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(t.set[0], i);
        size_t bytes = (size_t)tensor->count * sizeof(double);
        for (int k = 0; k < 3; k++) {
            t.v[k] = stored_values(t.set[k], tensor->name, tensor->count);
        }
        bool counts = strstr(tensor->name, "num_batches_tracked");
        assert_memory_equal(t.v[0], t.v[1], bytes);
        assert_int_equal(memcmp(t.v[0], t.v[2], bytes) == 0, counts);
        assert_true(!counts || t.v[0][0] == STEPS);
        for (int k = 0; k < 3; k++) {
            free(t.v[k]);
        }
    }
    three_close(&t);
}

// ---- steps that are not applied

// The second batch has an image that is not finite: its update is skipped, and no
// statistic is brought up to date.
static void skipped_leaves_statistics(void **state) {
    const cut c = {.micro = 16,
                   .wave = 4,
                   .statistics = "effective_batch",
                   .data = "\"order\": \"sequential\""};
    char text[TEXT_MAX], after[3][PATH_MAX];
    samples data;
    tr_error err = {0};
    trial t;
    samples_images(&data, 3 * T, SIDE, CHANNELS, CLASSES, 3);
    data.features[(T + 20) * data.width] = NAN;
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "after-%d", i + 1);
        print_run(&c, scratch_path(state, name), text);
        trial_open_text(&t, text, data.dataset, NULL);
        for (int s = 0; s <= i; s++) {
            tr_step_result result;
            trial_steps(&t, 1, &result);
            assert_int_equal(result.skipped, s == 1);
        }
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_close(&t);
        latest(state, name, after[i]);
    }
    stored_assert_same(after[0], after[1], weights);
    samples_free(&data);
}

// ---- plans

static tr_status plan_text(const char *text, tr_run **run, tr_plan **plan,
                           tr_error *err) {
    run_options options = {.text = text, .resume = "never"};
    *plan = NULL;
    tr_status status = run_open(&options, run, err);
    return status == TR_OK ? tr_plan_make(tr_run_plan_request(*run), plan, err)
                           : status;
}

// He et al., table 6; of those for large images, the parameters that torchvision's have
// (for small ones, with its head of ten classes).
static void published_sizes(void **state) {
    static const struct {
        int depth, side;
        int64_t parameters;
    } cases[] = {{20, 32, 269722},
                 {32, 32, 464154},
                 {56, 32, 853018},
                 {18, 224, 11689512},
                 {50, 224, 25557032}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        tr_run *run = NULL;
        tr_plan *plan;
        tr_error err = {0};
        int features = 3 * cases[i].side * cases[i].side;
        snprintf(text, sizeof text,
                 "{\"model\": {\"model_type\": \"resnet\", \"depth\": %d}, \"data\": "
                 "{\"format\": \"random\", \"samples\": 2, \"features\": %d, "
                 "\"classes\": %d}, \"train_batch_size\": 2, "
                 "\"train_micro_batch_size_per_gpu\": 1, \"steps\": 1}",
                 cases[i].depth, features, cases[i].side == 32 ? 10 : 1000);
        trial_ok(plan_text(text, &run, &plan, &err), &err);
        assert_int_equal(tr_plan_parameters(plan), cases[i].parameters);
        tr_plan_destroy(plan);
        tr_run_destroy(run);
    }
}

// The statistics of the effective batch ask for all micro-batches in one wave; the plan
// says so, and another wave is refused. Those of micro-batches ask for nothing.
static void waves_are_forced(void **state) {
    const cut forced = {.micro = 16, .statistics = "effective_batch"};
    const cut wrong = {.micro = 16, .wave = 2, .statistics = "effective_batch"};
    const cut free_to = {.micro = 16, .wave = 2, .statistics = "micro_batch"};
    const cut own = {.micro = 16, .wave = 2, .statistics = "rank_batch"};
    char text[TEXT_MAX], *printed = NULL;
    size_t bytes = 0;
    tr_run *run = NULL;
    tr_plan *plan;
    tr_error err = {0};
    (void)state;
    print_run(&forced, "unused", text);
    trial_ok(plan_text(text, &run, &plan, &err), &err);
    FILE *to = open_memstream(&printed, &bytes);
    assert_non_null(to);
    trial_ok(tr__plan_print(plan, to, &err), &err);
    fclose(to);
    assert_non_null(strstr(printed, "wave 4: unit "));
    assert_non_null(strstr(printed, "has an op over the whole effective batch"));
    free(printed);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    print_run(&wrong, "unused", text);
    assert_int_equal(plan_text(text, &run, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "execution.wave is 2"));
    tr_run_destroy(run);
    err = (tr_error){0};
    print_run(&own, "unused", text);
    assert_int_equal(plan_text(text, &run, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "an op over all micro-batches of a rank"));
    tr_run_destroy(run);
    print_run(&free_to, "unused", text);
    trial_ok(plan_text(text, &run, &plan, &err), &err);
    assert_int_equal(tr_run_plan_request(run)->wave, 2);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

static void hostile_shapes(void **state) {
    static const struct {
        const char *model, *data, *part;
    } cases[] = {
        {"\"depth\": 21", "\"features\": 192", "depth 21 is not one of the paper's"},
        {"\"image_size\": 0", "\"features\": 192", "image_size"},
        {"\"image_size\": 9", "\"features\": 192", "image_size"},
        {"\"num_channels\": -1", "\"features\": 192", "num_channels"},
        {"\"width\": 0", "\"features\": 192", "width"},
        {"\"batch_norm\": \"batch\"", "\"features\": 192", "batch_norm"},
        {"\"shortcut\": \"none\"", "\"features\": 192", "shortcut"},
        {"\"batch_norm_eps\": 0", "\"features\": 192", "batch_norm_eps"},
        {"\"image_size\": 1048576, \"num_channels\": 4096", "\"features\": 192",
         "features"},
        {"\"image_size\": 8", "\"features\": 192, \"image_mean\": 3", "image_mean"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        tr_run *run = NULL;
        tr_plan *plan;
        tr_error err = {0};
        snprintf(text, sizeof text,
                 "{\"model\": {\"model_type\": \"resnet\", %s}, \"data\": {\"format\": "
                 "\"random\", \"samples\": 9, \"classes\": 10, %s}, "
                 "\"train_batch_size\": 3, \"steps\": 1}",
                 cases[i].model, cases[i].data);
        tr_status status = plan_text(text, &run, &plan, &err);
        if (status == TR_OK || !strstr(err.message, cases[i].part)) {
            fail_msg("%s, %s: \"%s\"", cases[i].model, cases[i].data, err.message);
        }
        tr_plan_destroy(plan);
        tr_run_destroy(run);
    }
}

#define ON_DISK(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(small_images_as_pytorch),
        ON_DISK(bottlenecks_as_pytorch),
        ON_DISK(strides_that_divide_the_image_as_pytorch),
        ON_DISK(cuts_change_nothing),
        ON_DISK(recomputed_as_kept),
        ON_DISK(resumed_as_whole),
        ON_DISK(micro_batches_alone),
        ON_DISK(one_rank_is_all),
        ON_DISK(reproducible_as_uncut),
        ON_DISK(skipped_leaves_statistics),
        ON_DISK(on_nvme_as_here),
        ON_DISK(in_16_bits),
        cmocka_unit_test(published_sizes),
        cmocka_unit_test(waves_are_forced),
        cmocka_unit_test(hostile_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
