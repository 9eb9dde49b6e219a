// The examples do what they are shown for.
#include "command.h"

#include "draws.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char source[] = TR_SOURCE_DIR "/examples/";

static const char *example(const char *name) {
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", source, name);
    return path;
}

static json_int_t step_of(void *const *state, const char *out) {
    json_t *found = succeed_json(state, LIST("inspect", out, "--json"));
    json_int_t step =
        json_integer_value(json_object_get(json_object_get(found, "state"), "step"));
    json_decref(found);
    return step;
}

// Five epochs of 1,000 samples in batches of 64: 15 whole ones and one of 40, 80
// updates, no clipping.
static void test_classifier(void **state) {
    int steps = 0, epochs = 0, shorts = 0;
    outcome o = run(state, LIST("train", example("classifier.json")));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "Adam, gradient_clipping 0; rate of update 1: 0.001");
    assert_says(o.err, "batch 64 = 64 x 1 accumulation step; 80 optimizer steps");
    assert_says(o.out, "step 80/80");
    outcome_free(&o);
    char *text = file_read(state, "out/classifier/metrics.jsonl", NULL), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *targets = json_object_get(object, "targets");
        steps += targets != NULL;
        shorts += json_number_value(targets) == 40;
        epochs += json_object_get(object, "epoch_loss") != NULL;
        json_decref(object);
    }
    assert_int_equal(steps, 80);
    assert_int_equal(shorts, 5);
    assert_int_equal(epochs, 5);
    free(text);
    assert_int_equal(step_of(state, "out/classifier"), 80);
}

// The same run with the optimizer on the host: the same bits.
static void test_classifier_offload(void **state) {
    free(succeed(state, LIST("train", example("classifier.json"))));
    outcome o = run(state, LIST("train", example("classifier_offload.json")));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "ignored (no effect in Tranche): "
                       "zero_optimization.offload_optimizer.pin_memory");
    outcome_free(&o);
    char *same = succeed(state, LIST("diff", "out/classifier/checkpoints/latest",
                                     "out/classifier-offload/checkpoints/latest"));
    assert_says(same, "bit-identical");
    free(same);
}

// The program on the library: as many updates, and it learns.
static void test_classifier_program(void **state) {
    static const setting program = {.program = TR_EXAMPLES "/classifier"};
    outcome o = run_with(state, &program, LIST(NULL));
    double first = 0, last = 0;
    assert_int_equal(o.status, 0);
    const char *begin = strstr(o.out, "loss "), *end = strstr(o.out, "step 80");
    assert_true(begin && end);
    assert_int_equal(sscanf(begin, "loss %lf", &first), 1);
    assert_int_equal(sscanf(end, "step 80 loss %lf", &last), 1);
    assert_true(last < 0.75 * first);
    outcome_free(&o);
    assert_int_equal(step_of(state, "out/classifier-c"), 80);
}

// What the plan's ledger says, as the program's JSON has it.
static void test_ledger_program(void **state) {
    static const setting program = {.program = TR_EXAMPLES "/ledger"};
    char wanted[64];
    json_t *plan = succeed_json(state, LIST("plan", example("classifier.json"), "--set",
                                            "train_batch_size=32", "--json"));
    const json_t *device = json_object_get(json_object_get(plan, "ledger"), "device");
    snprintf(wanted, sizeof wanted, "%16lld  parameters\n",
             json_integer_value(json_object_get(device, "parameters")));
    outcome o = run_with(state, &program,
                         LIST(example("classifier.json"), "train_batch_size=32"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "device: ");
    assert_says(o.out, wanted);
    outcome_free(&o);
    json_decref(plan);
}

// A model of bytes that has learnt a little is asked.
static void test_ask_program(void **state) {
    static const setting program = {.program = TR_EXAMPLES "/ask"};
    char wanted[64];
    file_words(state, "text.txt", 30000);
    file_words(state, "more.txt", 3000);
    free(succeed(state, LIST("train", example("text.json"), "--data", "text.txt",
                             "--steps", "2", "--set", "train_batch_size=4", "--set",
                             "train_micro_batch_size_per_gpu=2")));
    json_t *found = succeed_json(
        state, LIST("evaluate", "out/text", "--data", "more.txt", "--json"));
    snprintf(wanted, sizeof wanted, "loss %.4f on %lld targets",
             json_number_value(json_object_get(found, "loss")),
             json_integer_value(json_object_get(found, "targets")));
    outcome o = run_with(state, &program, LIST("out/text", "more.txt", "the"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, wanted);
    assert_says(o.out, "\nthe");
    outcome_free(&o);
    json_decref(found);
}

static void test_own_model(void **state) {
    static const setting program = {.program = TR_EXAMPLES "/own_model"};
    outcome o = run_with(state, &program, LIST(NULL));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
}

// The text run, a few steps of it.
static void test_text(void **state) {
    file_words(state, "text.txt", 30000);
    outcome o = run(state, LIST("train", example("text.json"), "--data", "text.txt",
                                "--steps", "2", "--set", "train_batch_size=4", "--set",
                                "train_micro_batch_size_per_gpu=2"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "step 2: validation loss");
    outcome_free(&o);
}

// A .npy file of so many elements of one byte, which are 0 to `range` - 1 by turns.
static void write_npy(void *const *state, const char *name, const char *shape,
                      size_t count, int range) {
    size_t head = 128, bytes = head + count;
    char *file = calloc(1, bytes);
    assert_non_null(file);
    memset(file, ' ', head);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length =
        snprintf(file + 10, head - 10,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", shape);
    file[10 + length] = ' ';
    file[head - 1] = '\n';
    for (size_t i = 0; i < count; i++) {
        file[head + i] = (char)(i * 7 % (size_t)range);
    }
    file_write(state, name, file, bytes);
    free(file);
}

// The digits run on images of the same form, two epochs of them.
static void test_digits(void **state) {
    assert_int_equal(mkdir(file_path(state, "digits"), 0777), 0);
    write_npy(state, "digits/x.npy", "(80, 1, 8, 8)", 80 * 64, 17);
    write_npy(state, "digits/y.npy", "(80,)", 80, 10);
    write_npy(state, "digits/vx.npy", "(20, 1, 8, 8)", 20 * 64, 17);
    write_npy(state, "digits/vy.npy", "(20,)", 20, 10);
    outcome o = run(state, LIST("train", example("digits.json"), "--steps", "6"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "batch 32 = 8 x 4 accumulation steps");
    assert_says(o.out, "step 6: validation loss");
    outcome_free(&o);
    assert_int_equal(step_of(state, "out/digits"), 6);
}

// Plans for machines that are not here are tests of figures. What they run through a
// sanitizer sees in plan/, planner/ and sim/, so it leaves them to the release build.
static void leave_figures_to_release(void) {
    if (TEST_SANITIZED) {
        skip();
    }
}

// Every machine that is described: GPT-2 on one rank and on several, in both precisions
// and with its optimizer away from the device.
static void test_machines(void **state) {
    leave_figures_to_release();
    static const char text_json[] = TR_SOURCE_DIR "/examples/text.json";
    static const char *const machines[][2] = {
        {"dgx-a100", "16"}, {"dgx-h100", "16"}, {"two-cores", "2"}};
    static const char *const cases[][2] = {
        {"bf16.enabled=false", "zero_optimization.stage=0"},
        {"bf16.enabled=true", "zero_optimization.stage=3"},
        {"bf16.enabled=true", "zero_optimization.offload_optimizer.device=cpu"},
    };
    double seconds[3];
    file_words(state, "text.txt", 30000);
    for (int m = 0; m < 3; m++) {
        char name[64];
        snprintf(name, sizeof name, "machines/%s.json", machines[m][0]);
        for (int c = 0; c < 3; c++) {
            json_t *found = succeed_json(
                state, LIST("simulate", text_json, "--data", "text.txt", "--machine",
                            example(name), "--ranks", c == 0 ? "1" : machines[m][1],
                            "--set", cases[c][0], "--set", cases[c][1], "--json"));
            seconds[m] = json_number_value(json_object_get(found, "seconds"));
            assert_true(seconds[m] > 0 && seconds[m] < 10);
            json_decref(found);
        }
    }
    assert_true(seconds[1] < seconds[0] && seconds[0] < seconds[2]);
}

// One GPU of each kind: what the machine file says chooses the backend.
static void test_single_gpus(void **state) {
    leave_figures_to_release();
    static const char text_json[] = TR_SOURCE_DIR "/examples/text.json";
    static const char *const machines[][2] = {
        {"h200", "sm_90"}, {"a100", "sm_80"}, {"rtx4090", "sm_89"}, {"a10", "sm_80"}};
    file_words(state, "text.txt", 30000);
    for (int m = 0; m < 4; m++) {
        char name[64];
        snprintf(name, sizeof name, "machines/%s.json", machines[m][0]);
        char *text = succeed(state, LIST("plan", text_json, "--data", "text.txt",
                                         "--machine", example(name)));
        assert_says(text, machines[m][1]);
        assert_says(text, "\nkernels of sm_"); // by name, although no GPU is here
        assert_says(text, " attention.cuda,");
        free(text);
        json_t *found =
            succeed_json(state, LIST("simulate", text_json, "--data", "text.txt",
                                     "--machine", example(name), "--json"));
        double seconds = json_number_value(json_object_get(found, "seconds"));
        assert_true(seconds > 0 && seconds < 0.1);
        json_decref(found);
    }
}

// Products in 8 bits go by their own rate: a step of wide layers is faster with them
// than in bf16.
static void test_gpus_multiply_8_bits(void **state) {
    leave_figures_to_release();
    static const char text_json[] = TR_SOURCE_DIR "/examples/text.json";
    static const char *const machines[] = {
        "machines/h200.json", "machines/dgx-h100.json", "machines/rtx4090.json"};
    file_words(state, "text.txt", 30000);
    for (int m = 0; m < 3; m++) {
        double seconds[2];
        for (int fp8 = 0; fp8 < 2; fp8++) {
            json_t *found = succeed_json(
                state, LIST("simulate", text_json, "--data", "text.txt", "--machine",
                            example(machines[m]), "--ranks", "1", "--set",
                            "device=cuda", "--set", "bf16.enabled=true", "--set",
                            "model.n_embd=2048", "--set", "model.n_positions=1024",
                            "--set", "model.n_head=16", "--set",
                            fp8 ? "fp8.enabled=true" : "fp8.enabled=false", "--json"));
            seconds[fp8] = json_number_value(json_object_get(found, "seconds"));
            json_decref(found);
        }
        assert_true(seconds[1] > 0 && seconds[1] < seconds[0]);
    }
}

// A plan with the CUDA backend's kernels needs neither a GPU nor nvcc. For another
// machine it may be of several ranks, which the backend does not run yet.
static void test_gpus_that_are_not_here(void **state) {
    leave_figures_to_release();
    static const char text_json[] = TR_SOURCE_DIR "/examples/text.json";
    static const char *const ranks[] = {"1", "8"};
    file_words(state, "text.txt", 30000);
    for (int i = 0; i < 2; i++) {
        char *text =
            succeed(state, LIST("plan", text_json, "--data", "text.txt", "--machine",
                                example("machines/dgx-h100.json"), "--ranks", ranks[i],
                                "--set", "bf16.enabled=false", "--set", "device=cuda"));
        assert_says(text, "kernels: sm_90");
        free(text);
        json_t *found = succeed_json(
            state, LIST("simulate", text_json, "--data", "text.txt", "--machine",
                        example("machines/dgx-h100.json"), "--ranks", ranks[i], "--set",
                        "bf16.enabled=false", "--set", "device=cuda", "--json"));
        assert_true(json_number_value(json_object_get(found, "seconds")) > 0);
        json_decref(found);
    }
}

// Llama 7B with a base in 4 bits fits into 24 GB; without weights and data.
static void test_few_bits(void **state) {
    leave_figures_to_release();
    const char *path = example("llama-7b-nf4.json");
    json_t *plan = succeed_json(
        state, LIST("plan", path, "--json", "--set", "execution.threads=2"));
    const json_t *device = json_object_get(json_object_get(plan, "ledger"), "device");
    json_int_t base = json_integer_value(json_object_get(plan, "parameters")) -
                      json_integer_value(json_object_get(plan, "trained_parameters"));
    assert_string_equal(json_string_value(json_object_get(plan, "quantized_base")),
                        "nf4, double");
    assert_true(base > 6700000000);
    assert_true(json_integer_value(json_object_get(device, "total")) < 24000000000);
    assert_true(json_integer_value(json_object_get(device, "parameters")) <
                base * 62 / 100); // embedding and head in 16 bits
    json_decref(plan);
}

static json_int_t device_total(json_t *plan, const char *row) {
    const json_t *ledger = json_object_get(plan, "ledger");
    const json_t *device = json_object_get(ledger, "device");
    json_int_t bytes = json_integer_value(json_object_get(device, row));
    json_decref(plan);
    return bytes;
}

// path: [PATH_MAX] of the run file. Returns a card of 24 GB.
static const char *in_examples(char *path, const char *name) {
    snprintf(path, PATH_MAX, "%s", example(name));
    return example("machines/rtx4090.json");
}

// Qwen2.5 7B beside LoRA in bf16 fits on a card of 24 GB; in 4 bits it takes less than
// half.
static void test_qwen(void **state) {
    leave_figures_to_release();
    char path[PATH_MAX];
    const char *machine = in_examples(path, "qwen-7b.json");
    json_t *plain = succeed_json(state, LIST("plan", path, "--json", "--machine",
                                             machine, "--set", "device=cuda"));
    json_t *bits =
        succeed_json(state, LIST("plan", path, "--json", "--machine", machine, "--set",
                                 "device=cuda", "--set", "quantization.base=nf4",
                                 "--set", "quantization.double=true"));
    json_incref(plain);
    assert_true(device_total(plain, "total") < 24000000000);
    assert_true(device_total(bits, "parameters") * 2 <
                device_total(plain, "parameters"));
}

// GPT-2 XL whole on 24 GB: with states in 8 bits all of it lies there, with states in
// f32 these lie on the host.
static void test_gpt2_xl(void **state) {
    leave_figures_to_release();
    char path[PATH_MAX];
    const char *machine = in_examples(path, "gpt2-xl.json");
    json_t *bits =
        succeed_json(state, LIST("plan", path, "--json", "--set", "execution.threads=2",
                                 "--set", "memory.total=64GB"));
    json_t *f32 = succeed_json(state, LIST("plan", path, "--json", "--machine", machine,
                                           "--set", "device=cuda", "--set",
                                           "optimizer.params.state_dtype=f32"));
    json_incref(f32);
    json_incref(bits);
    assert_true(device_total(bits, "total") < 24000000000);
    assert_true(device_total(bits, "optimizer") > 3000000000);
    assert_true(device_total(f32, "total") < 24000000000);
    assert_int_equal(device_total(f32, "optimizer"), 0);
}

// What a recipe of BERT takes on the device at this batch, planned for two cores.
static double recipe_bytes(void *const *state, const char *name, const char *batch,
                           const char *model) {
    char size[64], shape[256];
    snprintf(size, sizeof size, "train_batch_size=%s", batch);
    snprintf(shape, sizeof shape, "model=%s", model);
    json_t *plan = succeed_json(
        state,
        LIST("plan", example(name), "--machine",
             TR_SOURCE_DIR "/examples/machines/two-cores.json", "--set", size, "--set",
             shape, "--set",
             "data.tokenizer=" TR_TEST_DATA "/encoders/bert/tokenizer.json", "--json"));
    const json_t *device = json_object_get(json_object_get(plan, "ledger"), "device");
    double bytes = json_number_value(json_object_get(device, "total"));
    json_decref(plan);
    return bytes;
}

// Both phases of LAMB, and BERT-Base: they fit 24 GB, and 65,536 samples a step take as
// much as 256 do.
static void test_bert_recipes(void **state) {
    static const char *const recipes[][3] = {
        {"bert-base.json", "8192", "\"bert-base-uncased\""},
        {"bert-large-128.json", "65536", "\"bert-large-uncased\""},
        {"bert-large-512.json", "32768", "\"bert-large-uncased\""},
    };
    // As wide as BERT-Large: plans of so many micro-batches take long with 24 layers.
    static const char two[] = "{\"model_type\": \"bert\", \"hidden_size\": 1024, "
                              "\"num_hidden_layers\": 2, \"num_attention_heads\": "
                              "16, \"intermediate_size\": 4096}";
    leave_figures_to_release();
    for (int i = 0; i < 3; i++) {
        double whole = recipe_bytes(state, recipes[i][0], "256", recipes[i][2]);
        assert_true(whole > 2e9 && whole <= 24e9);
        double few = recipe_bytes(state, recipes[i][0], "256", two);
        double many = recipe_bytes(state, recipes[i][0], recipes[i][1], two);
        assert_true(many >= few && many <= 1.01 * few);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_classifier),
        TEST(test_classifier_offload),
        TEST(test_classifier_program),
        TEST(test_ledger_program),
        TEST(test_ask_program),
        TEST(test_own_model),
        TEST(test_bert_recipes),
        TEST(test_few_bits),
        TEST(test_qwen),
        TEST(test_gpt2_xl),
        TEST(test_text),
        TEST(test_digits),
        TEST(test_machines),
        TEST(test_single_gpus),
        TEST(test_gpus_multiply_8_bits),
        TEST(test_gpus_that_are_not_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
