// Gradients summed in 16 bits (data_types.grad_accum_dtype): each addition rounded as
// it should be, training near that with f32 sums, two bytes a parameter, and sums that
// overflow skip the step.
// Labels: isa
#include "backend/cpu/half.h"
#include "base/half.h"
#include "exec/walk.h"
#include "plan/print/print.h"
#include "plan/units/offsets.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048, T = 12, LENGTH = 16, VOCABULARY = 61, FEATURES = 7 };

typedef struct setting {
    const char *sums; // as the run file spells it
    int64_t micro, wave;
    const char *homes;     // of zero_optimization
    const char *optimizer; // NULL: AdamW
    const char *more;      // keys, each followed by a comma
    int steps;             // 0: 5
} setting;

static const char adamw[] = "{\"type\": \"AdamW\", \"params\": {\"lr\": 2e-3}}";
static const char gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 2, "
    "\"n_positions\": 16, \"vocab_size\": 61, \"resid_pdrop\": 0, \"embd_pdrop\": 0, "
    "\"attn_pdrop\": 0}";
static const char mlp[] = "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 9, 5]}";

static int steps_of(const setting *s) {
    return s->steps ? s->steps : 5;
}

static void print_run(const setting *s, const char *model, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, %s \"data_types\": {\"grad_accum_dtype\": \"%s\"}, "
             "\"steps\": %d, \"seed\": 3, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": %d, "
             "\"threads\": 2}, \"zero_optimization\": {%s}, \"optimizer\": %s, "
             "\"data\": {\"order\": \"sequential\"}}",
             model, s->more ? s->more : "\"out\": \"unused\",", s->sums, steps_of(s), T,
             (int)(s->micro ? s->micro : T), (int)(s->wave ? s->wave : 1),
             s->homes ? s->homes : "", s->optimizer ? s->optimizer : adamw);
}

static void open_setting(const setting *s, const char *model, samples *data,
                         const char *resume, trial *t) {
    char text[TEXT_MAX];
    print_run(s, model, text);
    run_options options = {.text = text, .own_train = data->dataset, .resume = resume};
    trial_open(t, &options);
}

typedef struct outcome {
    snapshot start, end;
    tr_step_result last;
} outcome;

static void run(const setting *s, samples *data, outcome *o) {
    trial t;
    open_setting(s, gpt2, data, "never", &t);
    snapshot_take(&o->start, &t);
    trial_steps(&t, steps_of(s) - 1, NULL);
    trial_steps(&t, 1, &o->last);
    snapshot_take(&o->end, &t);
    trial_check_arenas(&t);
    trial_close(&t);
}

static void outcome_free(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->end);
}

static void make_tokens(samples *data) {
    samples_tokens(data, 3 * T + 5, LENGTH, VOCABULARY, 5);
}

// ---- what a sum is

// The gradient of the first step's layer 0, [FEATURES * 9], in f32 sums or as they are.
static void first_gradient(const char *sums, int64_t micro, int64_t begin, int64_t end,
                           float *values) {
    samples data;
    trial t;
    setting s = {.sums = sums, .micro = micro, .steps = 1};
    samples_features(&data, 2 * T, FEATURES, 5, 3);
    samples_mask(&data, begin, end);
    open_setting(&s, mlp, &data, "never", &t);
    trial_steps(&t, 1, NULL);
    assert_true(tr__executor_read_grad(t.engine->executor, 0, 0, FEATURES * 9, values));
    trial_close(&t);
    samples_free(&data);
}

static uint16_t narrow(tr_dtype type, float x) {
    return type == TR_BF16 ? tr__bf16_of_f32(x) : tr__f16_of_f32(x);
}

static float rounded(tr_dtype type, float x) {
    uint16_t half = narrow(type, x);
    return type == TR_BF16 ? tr__bf16_to_f32(half) : tr__f16_to_f32(half);
}

// What only one of two micro-batches has targets for is that one's gradient, since the
// loss's seed goes by all samples.
static void each_addition_is_rounded(void **state) {
    enum { COUNT = FEATURES * 9 };
    static const struct {
        tr_dtype type;
        const char *name;
    } types[] = {{TR_BF16, "bf16"}, {TR_F16, "fp16"}};
    float first[COUNT], second[COUNT], once[COUNT], sum[COUNT];
    (void)state;
    first_gradient("fp32", T / 2, T / 2, T, first);
    first_gradient("fp32", T / 2, 0, T / 2, second);
    for (int k = 0; k < 2; k++) {
        int differ = 0;
        tr_dtype type = types[k].type;
        first_gradient(types[k].name, T / 2, T / 2, T, once);
        first_gradient(types[k].name, T / 2, 0, 0, sum);
        for (int i = 0; i < COUNT; i++) {
            assert_true(once[i] == rounded(type, first[i]));
            assert_true(sum[i] == rounded(type, once[i] + second[i]));
            differ += sum[i] != first[i] + second[i];
        }
        assert_true(differ > COUNT / 2);
    }
}

// ---- training

static const char lamb[] = "{\"type\": \"Lamb\", \"params\": {\"lr\": 1e-2, "
                           "\"exclude_1d\": true}}";
static const char lars[] = "{\"type\": \"LARS\", \"params\": {\"lr\": 2}}";
static const char sgd[] =
    "{\"type\": \"SGD\", \"params\": {\"lr\": 0.05, \"momentum\": 0.9}}";
static const char adagrad[] = "{\"type\": \"Adagrad\", \"params\": {\"lr\": 1e-2}}";
static const char lion[] = "{\"type\": \"Lion\", \"params\": {\"lr\": 1e-4}}";
static const char away[] = "\"offload_optimizer\": {\"device\": \"cpu\"}, "
                           "\"offload_param\": {\"device\": \"cpu\"}";
static const char on_nvme[] =
    "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/tmp\"}, "
    "\"offload_param\": {\"device\": \"nvme\", \"nvme_path\": \"/tmp\"}";

enum { CUTS = 5 };

// What is compared is rounded by the sums alone: both compute in the same type. Without
// a loss scale many gradients would be too small for fp16.
static void compare_cuts(const char *sums, const char *more, const char *optimizer,
                         double share) {
    static const setting cuts[CUTS] = {{.micro = 12, .wave = 1},
                                       {.micro = 3, .wave = 1},
                                       {.micro = 5, .wave = 3},
                                       {.micro = 1, .wave = 12, .homes = away},
                                       {.micro = 4, .wave = 3, .homes = on_nvme}};
    setting whole = {.sums = "fp32", .optimizer = optimizer, .more = more};
    samples data;
    outcome want, got;
    make_tokens(&data);
    run(&whole, &data, &want);
    for (int c = 0; c < CUTS; c++) {
        setting s = cuts[c];
        s.optimizer = optimizer;
        s.sums = sums;
        s.more = more;
        run(&s, &data, &got);
        assert_true(fabs(got.last.loss - want.last.loss) < share / 10 * want.last.loss);
        double off =
            snapshot_assert_close(&want.start, &want.end, &got.end, share, optimizer);
        assert_true(off > 1e-5); // it is rounded
        outcome_free(&got);
    }
    outcome_free(&want);
    samples_free(&data);
}

// By share of the distance moved, of the uncut batch with f32 sums: twice what was met.
// Where a step does not grow with the gradient (all but SGD and LARS), small elements
// move as far as others, and the rounding of their terms decides where to.
static void training_is_near_f32_sums(void **state) {
    static const char scaled[] =
        "\"fp16\": {\"enabled\": true, \"loss_scale\": 256}, \"out\": \"unused\",";
    static const struct {
        const char *optimizer;
        double bf16, fp16;
    } all[] = {{sgd, 0.03, 0.005}, {lars, 0.02, 0.002}, {adamw, 0.3, 0.1},
               {lamb, 0.15, 0.03}, {adagrad, 0.5, 0.2}, {lion, 0.3, 0.4}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        compare_cuts("bf16", NULL, all[i].optimizer, all[i].bf16);
        compare_cuts("fp16", scaled, all[i].optimizer, all[i].fp16);
    }
}

// Nothing is left of f32 sums but their own type.
static void without_the_key_nothing_changes(void **state) {
    samples data;
    outcome o[2];
    const char *spelt[] = {"fp32", "auto"};
    (void)state;
    make_tokens(&data);
    for (int i = 0; i < 2; i++) {
        setting s = {.sums = spelt[i], .micro = 5, .wave = 2};
        run(&s, &data, &o[i]);
    }
    snapshot_assert_same(&o[0].end, &o[1].end);
    outcome_free(&o[0]);
    outcome_free(&o[1]);
    samples_free(&data);
}

// A model without shared weights: no wave changes the order of additions.
static void waves_change_no_bit(void **state) {
    samples data;
    snapshot ends[3];
    (void)state;
    samples_features(&data, 2 * T, FEATURES, 5, 3);
    for (int i = 0; i < 3; i++) {
        trial t;
        setting s = {.sums = "bf16", .micro = 2, .wave = 1 + 5 * i / 2};
        open_setting(&s, mlp, &data, "never", &t);
        trial_steps(&t, 5, NULL);
        snapshot_end(ends, i, &t);
    }
    for (int i = 0; i < 3; i++) {
        snapshot_free(&ends[i]);
    }
    samples_free(&data);
}

// ---- numbers

// Each micro-batch's gradient fits fp16, and their sum does not.
static void a_sum_that_overflows_skips_the_step(void **state) {
    enum { COUNT = FEATURES * 9 };
    static const char *const types[] = {"fp32", "bf16", "fp16"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        trial t;
        samples data;
        tr_step_result r;
        float grad[COUNT], most = 0;
        snapshot before, after;
        setting s = {.sums = types[k], .micro = 1, .steps = 1};
        samples_features(&data, 2 * T, FEATURES, 5, 3);
        for (int i = T * FEATURES - 1; i >= 0; i--) { // alike, so that they add up
            data.features[i] = data.features[i % FEATURES] * 4e5f;
            data.target[i / FEATURES] = data.target[0];
        }
        open_setting(&s, mlp, &data, "never", &t);
        snapshot_take(&before, &t);
        trial_steps(&t, 1, &r);
        snapshot_take(&after, &t);
        assert_true(tr__executor_read_grad(t.engine->executor, 0, 0, COUNT, grad));
        for (int i = 0; i < COUNT; i++) {
            most = fmaxf(most, fabsf(grad[i]));
        }
        bool over = k == 2;
        assert_true(over ? isinf(most) : most > 65520 && most / T < 65000);
        assert_true(r.skipped == over && isfinite(r.grad_norm) == !over);
        assert_true(r.update == !over);
        if (over) {
            snapshot_assert_same(&before, &after);
        }
        snapshot_free(&before);
        snapshot_free(&after);
        trial_close(&t);
        samples_free(&data);
    }
}

// Too large a scale overflows the sums of fp16, and is halved until they fit.
static void a_loss_scale_finds_its_place(void **state) {
    samples data;
    trial t;
    tr_step_result r = {0};
    int steps = 0;
    (void)state;
    make_tokens(&data);
    setting s = {.sums = "half",
                 .micro = 5,
                 .steps = 60,
                 .more = "\"fp16\": {\"enabled\": true, \"initial_scale_power\": 30, "
                         "\"hysteresis\": 1}, \"out\": \"unused\","};
    open_setting(&s, gpt2, &data, "never", &t);
    do {
        trial_steps(&t, 1, &r);
        steps++;
    } while (r.skipped && steps < 30);
    assert_true(steps > 1 && !r.skipped && r.loss_scale < 0x1p30);
    assert_true(isfinite(r.grad_norm));
    trial_close(&t);
    samples_free(&data);
}

// The first micro-batch is measured before it is rounded; the norm of the sum is of
// rounded sums. (A tied tensor is measured where sums are f32 alone: here is none.)
static void the_noise_scale_is_that_of_f32_sums(void **state) {
    samples data;
    tr_step_result r[2];
    (void)state;
    samples_features(&data, 8 * T, FEATURES, 5, 3);
    for (int i = 0; i < 2; i++) {
        trial t;
        setting s = {.sums = i ? "bf16" : "fp32",
                     .micro = 3,
                     .wave = 2,
                     .steps = 8,
                     .more = "\"noise_scale\": {\"measure\": true}, "
                             "\"out\": \"unused\","};
        open_setting(&s, mlp, &data, "never", &t);
        trial_steps(&t, 7, NULL);
        trial_steps(&t, 1, &r[i]);
        trial_close(&t);
    }
    assert_true(isfinite(r[0].noise_scale) && r[0].noise_scale > 0);
    assert_true(fabs(r[1].noise_scale - r[0].noise_scale) < 0.05 * r[0].noise_scale);
    samples_free(&data);
}

// A larger batch is another plan in the same memory.
static void the_batch_may_change(void **state) {
    samples data;
    outcome o[2];
    (void)state;
    make_tokens(&data);
    for (int i = 0; i < 2; i++) {
        setting s = {.sums = i ? "bf16" : "fp32",
                     .micro = 3,
                     .optimizer = sgd,
                     .more = "\"batch_schedule\": [[2, 14], [4, 19]], "
                             "\"out\": \"unused\","};
        run(&s, &data, &o[i]);
        assert_int_equal(o[i].last.train_batch, 19);
    }
    snapshot_assert_close(&o[0].start, &o[0].end, &o[1].end, 0.03, "changes");
    outcome_free(&o[0]);
    outcome_free(&o[1]);
    samples_free(&data);
}

// Checkpoints hold no gradients: the same bits in the same type, and any other goes on.
static void any_type_goes_on_from_a_checkpoint(void **state) {
    static const char *const types[] = {"bf16", "fp32", "fp16"};
    char more[512];
    samples data;
    snapshot straight;
    trial t;
    tr_error err = {0};
    make_tokens(&data);
    snprintf(more, sizeof more, "\"out\": \"%s\",", scratch_path(state, "out"));
    setting s = {.sums = "bf16", .micro = 4, .steps = 8, .more = more};
    open_setting(&s, gpt2, &data, "never", &t);
    trial_steps(&t, 4, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_steps(&t, 4, NULL);
    snapshot_take(&straight, &t);
    trial_close(&t);
    for (int i = 0; i < 3; i++) {
        snapshot end;
        s.sums = types[i];
        open_setting(&s, gpt2, &data, "auto", &t);
        trial_steps(&t, 4, NULL);
        snapshot_take(&end, &t);
        trial_close(&t);
        if (i == 0) {
            snapshot_assert_same(&straight, &end);
        }
        snapshot_assert_close(NULL, &straight, &end, 0.02, types[i]);
        snapshot_free(&end);
    }
    snapshot_free(&straight);
    samples_free(&data);
}

// ---- plans

static void make_plan(const setting *s, int ranks, samples *data, trial *t) {
    char text[TEXT_MAX];
    tr_error err = {0};
    print_run(s, gpt2, text);
    *t = (trial){0};
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .plan_only = true,
                           .ranks = ranks,
                           .resume = "never"};
    trial_ok(run_open(&options, &t->run, &err), &err);
    trial_ok(tr_plan_make(tr_run_plan_request(t->run), &t->plan, &err), &err);
}

static int64_t bytes_of(const trial *t, const tr_flat_range *range) {
    return t->plan->buffers[range->buffer].bytes;
}

// Sums take two bytes, wherever they are; so does what ranks and spaces are sent of
// them.
static void sums_take_half(void **state) {
    static const struct {
        const char *homes;
        int ranks;
    } all[] = {{"\"stage\": 0", 1}, {"\"stage\": 1", 2}, {"\"stage\": 2", 3},
               {"\"stage\": 3", 2}, {away, 1},           {on_nvme, 1}};
    samples data;
    (void)state;
    make_tokens(&data);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        trial t[2];
        for (int k = 0; k < 2; k++) {
            setting s = {.sums = k ? "bf16" : "fp32",
                         .micro = 2,
                         .wave = 6 / all[i].ranks,
                         .homes = all[i].homes};
            make_plan(&s, all[i].ranks, &data, &t[k]);
        }
        const tr_ledger *ledgers[] = {tr_plan_ledger(t[0].plan),
                                      tr_plan_ledger(t[1].plan)};
        for (size_t f = 0; f < t[0].plan->flat_count; f++) {
            const tr_flat *flats[] = {&t[0].plan->flats[f], &t[1].plan->flats[f]};
            // Whole lines of the cache.
            int64_t line = TR_ALIGNMENT;
            int64_t room = bytes_of(&t[0], &flats[0]->grad) / 4;
            int64_t half = (2 * room + line - 1) / line * line;
            assert_int_equal(bytes_of(&t[1], &flats[1]->grad), half);
        }
        assert_int_equal(2 * t[1].plan->traffic.reduce, t[0].plan->traffic.reduce);
        assert_true((ledgers[1]->bytes[TR_SPACE_HOST][TR_LEDGER_gradients] <
                     ledgers[0]->bytes[TR_SPACE_HOST][TR_LEDGER_gradients]) ==
                    (all[i].homes == away || all[i].homes == on_nvme));
        trial_close(&t[0]);
        trial_close(&t[1]);
    }
    samples_free(&data);
}

static void plans_say_the_type(void **state) {
    static const char *const types[] = {"fp32", "bf16", "float16"};
    static const char *const said[] = {NULL, "gradients summed in bf16\n",
                                       "gradients summed in fp16\n"};
    samples data;
    (void)state;
    make_tokens(&data);
    for (int k = 0; k < 3; k++) {
        char *text = NULL;
        size_t bytes = 0;
        tr_error err = {0};
        trial t;
        setting s = {.sums = types[k], .micro = 4};
        make_plan(&s, 1, &data, &t);
        FILE *to = open_memstream(&text, &bytes);
        trial_ok(tr__plan_print(t.plan, to, &err), &err);
        trial_ok(tr__plan_print_json(t.plan, to, &err), &err);
        fclose(to);
        bool found = strstr(text, said[k] ? said[k] : "gradients summed") != NULL;
        assert_true(found == (k > 0));
        assert_true((strstr(text, "\"gradient_sums\": \"") != NULL) == (k > 0));
        free(text);
        trial_close(&t);
    }
    samples_free(&data);
}

static void spellings_are_deepspeeds(void **state) {
    static const struct {
        const char *text;
        tr_dtype type;
    } all[] = {{"fp32", TR_F32},
               {"float32", TR_F32},
               {"float", TR_F32},
               {"auto", TR_F32},
               {"fp16", TR_F16},
               {"float16", TR_F16},
               {"half", TR_F16},
               {"torch.float16", TR_F16},
               {"bf16", TR_BF16},
               {"bfloat16", TR_BF16},
               {"torch.bfloat16", TR_BF16},
               {"BF16", TR_BF16},
               {"torch.float32", TR_F32}};
    samples data;
    (void)state;
    make_tokens(&data);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        trial t;
        setting s = {.sums = all[i].text};
        make_plan(&s, 1, &data, &t);
        assert_int_equal(t.plan->request.sums, all[i].type);
        trial_close(&t);
    }
    samples_free(&data);
}

static void refused(const char *sums, const char *more, const char *const words[]) {
    char text[TEXT_MAX];
    samples data;
    tr_error err = {0};
    tr_run *none = NULL;
    setting s = {.sums = sums, .more = more};
    make_tokens(&data);
    print_run(&s, gpt2, text);
    run_options options = {.text = text, .own_train = data.dataset};
    assert_int_equal(run_open(&options, &none, &err), TR_USAGE);
    for (int i = 0; words[i]; i++) {
        if (!strstr(err.message, words[i])) {
            fail_msg("no \"%s\" in: %s", words[i], err.message);
        }
    }
    samples_free(&data);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    refused("bf17", NULL,
            (const char *[]){"data_types.grad_accum_dtype", "bf16", NULL});
    refused("int8", NULL, (const char *[]){"data_types.grad_accum_dtype", NULL});
}

// The two keys say two things about the same sums.
static void reproducible_sums_are_integers(void **state) {
    samples data;
    trial t;
    tr_error err = {0};
    tr_plan *plan = NULL;
    (void)state;
    make_tokens(&data);
    setting s = {.sums = "fp16"};
    make_plan(&s, 1, &data, &t);
    tr_plan_request request = t.plan->request;
    request.reproducible = true;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "execution.reproducible"));
    assert_non_null(strstr(err.message, "data_types.grad_accum_dtype"));
    request.sums = TR_F64;
    request.reproducible = false;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_addition_is_rounded),
        cmocka_unit_test(training_is_near_f32_sums),
        cmocka_unit_test(without_the_key_nothing_changes),
        cmocka_unit_test(waves_change_no_bit),
        cmocka_unit_test(a_sum_that_overflows_skips_the_step),
        cmocka_unit_test(a_loss_scale_finds_its_place),
        cmocka_unit_test(the_noise_scale_is_that_of_f32_sums),
        cmocka_unit_test(the_batch_may_change),
        cmocka_unit_test_setup_teardown(any_type_goes_on_from_a_checkpoint,
                                        scratch_make, scratch_remove),
        cmocka_unit_test(sums_take_half),
        cmocka_unit_test(plans_say_the_type),
        cmocka_unit_test(spellings_are_deepspeeds),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(reproducible_sums_are_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
