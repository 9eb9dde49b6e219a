// Attention by a library, cuDNN, where there is one: here the device for tests has
// none, beside the stand-in (libraries/) it has that, and on a GPU the real one. Its
// kernels are the reference's, and training by them stays beside the CPU.
#include "backend/attention.h"
#include "backend/backend.h"
#include "backend/cuda/attend.h"
#include "cuda/trained.h"
#include "ops/apply.h"
#include "ops/cases.h"
#include "ops/conformance.h"
#include "ops/launch.h"
#include "ops/nn/attention/sizes.h"
#include "plan/flow/plan.h"
#include "plan/print/print.h"
#include "train/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const tr_case_list tr__cases_attention;

enum { STEPS = 5, LENGTH = 64, WORDS = 53, KNOWN = 919, OTHER = 928, SAMPLES = 12 };

static int installed(void) {
    const char *why = NULL;
    return tr__backend(TR_BACKEND_CUDA)->attention(&why);
}

static bool is_known(void) {
    return tr__cuda_attend_knows(installed());
}

// ---- runs

// GPT-2 with heads of 64, or a Llama whose heads share keys, of 128.
static const char gpt2[] = "\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 128, "
                           "\"n_head\": 2, \"n_positions\": 64, \"attn_pdrop\": 0, "
                           "\"embd_pdrop\": 0, \"resid_pdrop\": 0";
static const char llama[] =
    "\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 256, "
    "\"intermediate_size\": 96, \"num_attention_heads\": 2, "
    "\"num_key_value_heads\": 1, \"max_position_embeddings\": 64";

static void write_run(const char *model, const char *device, const char *more,
                      char *text, size_t size) {
    snprintf(text, size,
             "{\"model\": {%s, \"vocab_size\": %d}, \"steps\": %d, \"seed\": 3, "
             "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 3, "
             "\"bf16\": {\"enabled\": true}, \"device\": \"%s\", \"out\": \"unused\", "
             "%s\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.003}}}",
             model, WORDS, STEPS, device, more);
}

static void open_data(samples *data) {
    samples_tokens(data, SAMPLES, LENGTH, WORDS, 5);
}

static tr_status open_plan(const char *more, samples *data, trial *t, tr_error *err) {
    char text[1600];
    write_run(gpt2, "cuda", more, text, sizeof text);
    run_options options = {.text = text, .own_train = data->dataset, .resume = "never"};
    *t = (trial){0};
    tr_status status = run_open(&options, &t->run, err);
    return status == TR_OK ? tr_plan_make(tr_run_plan_request(t->run), &t->plan, err)
                           : status;
}

// What the plan prints, as text or as JSON; the caller frees it.
static char *print(const tr_plan *plan, bool json) {
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    trial_ok(json ? tr__plan_print_json(plan, to, &err)
                  : tr__plan_print(plan, to, &err),
             &err);
    fclose(to);
    return text;
}

static void assert_printed(const tr_plan *plan, const char *what, bool there) {
    for (int json = 0; json < 2; json++) {
        char *text = print(plan, json);
        if ((strstr(text, what) != NULL) != there) {
            fail_msg("\"%s\" is %s the plan:\n%s", what, there ? "not in" : "in", text);
        }
        free(text);
    }
}

// ---- tests

// A plan for a version needs no library; it is made where there is none.
static void a_plan_needs_no_library(void **state) {
    samples data;
    trial t;
    tr_error err = {0};
    (void)state;
    open_data(&data);
    trial_ok(
        open_plan("\"execution\": {\"attention\": \"cudnn-9.19\"}, ", &data, &t, &err),
        &err);
    assert_printed(t.plan, "attention_backward.cudnn", true);
    assert_printed(t.plan, "cuDNN 9.19, deterministic by", true);
    assert_int_equal(t.plan->request.attention, KNOWN);
    trial_close(&t);
    trial_ok(open_plan("\"execution\": {\"attention\": \"own\"}, ", &data, &t, &err),
             &err);
    assert_printed(t.plan, "cudnn", false);
    trial_close(&t);
    trial_ok(open_plan("\"execution\": {\"attention\": \"cudnn-9.19\", "
                       "\"reproducible\": true}, ",
                       &data, &t, &err),
             &err);
    assert_printed(t.plan, "cudnn", false);
    trial_close(&t);
    samples_free(&data);
}

// What runs by a plan for a version asks for this one.
static void a_run_needs_the_planned_version(void **state) {
    const char *name = tr__attention_name(installed() == KNOWN ? OTHER : KNOWN);
    const char *found = installed() > 0 ? "but this machine has " : "but ";
    char more[64];
    samples data;
    trial t;
    tr_error err = {0};
    (void)state;
    open_data(&data);
    snprintf(more, sizeof more, "\"execution\": {\"attention\": \"%s\"}, ", name);
    trial_ok(open_plan(more, &data, &t, &err), &err);
    assert_int_equal(tr_engine_create(t.run, t.plan, &t.engine, &err), TR_USAGE);
    if (!strstr(err.message, "the plan takes attention from cuDNN 9.") ||
        !strstr(err.message, found) || !strstr(err.message, "\"own\"")) {
        fail_msg("%s", err.message);
    }
    trial_close(&t);
    samples_free(&data);
}

static void what_is_installed_is_taken(void **state) {
    samples data;
    trial t;
    tr_error err = {0};
    (void)state;
    open_data(&data);
    trial_ok(open_plan("", &data, &t, &err), &err);
    assert_printed(t.plan, "attention.cudnn", is_known());
    assert_int_equal(t.plan->request.attention, is_known() ? installed() : -1);
    trial_close(&t);
    samples_free(&data);
}

// Does the library compute the case? (The other ones are the own kernels'.)
static bool is_of_library(const tr_case *c) {
    tr_attention_sizes s = tr__attention_sizes(c->in[0].desc.shape, c->attr);
    return c->in_count == 1 && s.dropout == 0 && !tr__attention_windowed(&s) &&
           (s.depth == 64 || s.depth == 128) && s.context % 64 == 0;
}

static bool get_case(int index, tr_case *out) {
    bool there = true;
    for (int i = 0, found = -1; there && found < index; i++) {
        there = tr__cases_attention.get(i, out);
        found += there && is_of_library(out);
    }
    return there;
}

static void kernels_conform(void **state) {
    const tr_case_list list = {"attention", get_case};
    int large = 0;
    (void)state;
    if (!is_known()) {
        skip();
    }
    test_apply_attention = installed();
    int failed = test_conform_on(&list, TR_BACKEND_CUDA, INT64_MAX, TR_NONE, &large);
    test_apply_attention = 0;
    assert_int_equal(failed, 0);
}

static void train(const char *model, const char *device, const char *more,
                  samples *data, trained *out) {
    char text[1600];
    trial t;
    write_run(model, device, more, text, sizeof text);
    trial_open_text(&t, text, data->dataset, NULL);
    trained_make(&t, STEPS, out);
    trained_check_arenas(&t);
    trial_close(&t);
}

// In bf16 sums are rounded elsewhere.
static void assert_beside(const trained *cpu, const trained *cuda) {
    for (int s = 0; s < STEPS; s++) {
        double allowed = s == 0 ? 2e-3 : 1e-2;
        if (!(fabs(cuda->steps[s].loss / cpu->steps[s].loss - 1) <= allowed) ||
            !(fabs(cuda->steps[s].grad_norm / cpu->steps[s].grad_norm - 1) <= 0.05)) {
            fail_msg("step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g", s + 1,
                     cuda->steps[s].loss, cpu->steps[s].loss, cuda->steps[s].grad_norm,
                     cpu->steps[s].grad_norm);
        }
    }
    assert_true(cuda->steps[STEPS - 1].loss < cuda->steps[0].loss);
}

static void it_trains_as_the_cpu(void **state) {
    const char *model = *state;
    samples data;
    trained cpu, cuda, recomputed;
    if (!is_known()) {
        skip();
    }
    open_data(&data);
    train(model, "cpu", "", &data, &cpu);
    train(model, "cuda", "", &data, &cuda);
    assert_beside(&cpu, &cuda);
    // What is recomputed has the same bits.
    train(model, "cuda", "\"execution\": {\"recompute\": \"attention\"}, ", &data,
          &recomputed);
    snapshot_assert_same(&cuda.end, &recomputed.end);
    trained_free(&cpu);
    trained_free(&cuda);
    trained_free(&recomputed);
    samples_free(&data);
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_needs_no_library),
        cmocka_unit_test(a_run_needs_the_planned_version),
        cmocka_unit_test(what_is_installed_is_taken),
        cmocka_unit_test(kernels_conform),
        cmocka_unit_test_prestate(it_trains_as_the_cpu, (void *)gpt2),
        cmocka_unit_test_prestate(it_trains_as_the_cpu, (void *)llama),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
