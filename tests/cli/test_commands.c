// help, version, plan, inspect and diff: what scripts rely on.
// Labels: check
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- help

static void test_help(void **state) {
    static const struct {
        const char *command;
        const char *options[7];
    } all[] = {
        {"train",
         {"RUN.json", "--data PATH", "--model FILE|DIR|NAME", "--out DIR",
          "--set KEY.PATH=VALUE", "--ranks W", "--threads N"}},
        {"plan", {"RUN.json", "--ranks W", "--set KEY.PATH=VALUE", "--json"}},
        {"sample",
         {"DIR", "--prompt TEXT", "--tokens N", "--temperature X", "--seed N",
          "--top-k K", "--top-p P"}},
        {"inspect", {"PATH", "--json"}},
        {"diff", {"A B", "--json"}},
        {"simulate", {"RUN.json", "--machine FILE", "--ranks W", "--trace FILE"}},
        {"calibrate", {"RUN.json", "--out FILE", "--ranks W"}},
        {"check", {"RUN.json", "--tolerance X", "--tensors", "--json"}},
        {"plot", {"OUT...", "--out FILE.svg"}},
        {"evaluate",
         {"DIR", "--data PATH", "--format F", "--logits FILE.npy", "--json"}},
        {"predict", {"DIR", "--data PATH", "--json"}},
    };
    char *top = succeed(state, LIST("--help"));
    assert_says(top, "--version");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_says(top, all[i].command);
        char *text = succeed(state, LIST(all[i].command, "--help"));
        for (int o = 0; o < 7 && all[i].options[o]; o++) {
            assert_says(text, all[i].options[o]);
        }
        char example[64];
        snprintf(example, sizeof example, "examples:\n    tranche %s ", all[i].command);
        assert_says(text, example);
        assert_says(text, "\nexit status:\n    0 ");
        free(text);
    }
    free(top);
    // Help is asked for where something is wrong.
    free(succeed(state, LIST("train", "nothere.json", "--bad", "--help")));
}

static void test_version(void **state) {
    int major, minor, patch, length = 0;
    char *text = succeed(state, LIST("--version"));
    assert_int_equal(
        sscanf(text, "tranche %d.%d.%d\n%n", &major, &minor, &patch, &length), 3);
    assert_int_equal(length, strlen(text));
    free(text);
}

// ---- plan

static void check_ledger(const json_t *ledger) {
    static const char *const spaces[] = {"device", "host", "nvme"};
    static const char *const categories[] = {"parameters",    "gradients", "optimizer",
                                             "activations",   "boundary",  "workspace",
                                             "communication", "staging",   "data"};
    for (int s = 0; s < 3; s++) {
        const json_t *space = json_object_get(ledger, spaces[s]);
        for (int c = 0; c < 9; c++) {
            assert_true(number_in(space, categories[c]) >= 0);
        }
        double sum = 0;
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)space, name, value) {
            sum += strcmp(name, "total") == 0 ? 0 : json_number_value(value);
        }
        assert_true(sum == number_in(space, "total"));
    }
}

static void check_steps(const json_t *plan) {
    const json_t *steps = json_object_get(plan, "steps");
    size_t forwards = 0, updates = 0;
    assert_true(json_array_size(steps) > 0);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *kind = json_object_get(json_array_get(steps, i), "kind");
        assert_true(json_is_string(kind));
        forwards += strcmp(json_string_value(kind), "forward") == 0;
        updates += strcmp(json_string_value(kind), "update") == 0;
    }
    // 4 units, 3 micro-batches.
    assert_int_equal(forwards, 12);
    assert_true(updates > 0);
}

static void test_plan_json(void **state) {
    static const char *const traffic[] = {"gather", "reduce", "device_host", "reached",
                                          "nvme"};
    run_file(state, text_run, "");
    json_t *plan = succeed_json(state, LIST("plan", "run.json", "--json"));
    assert_true(number_in(plan, "ranks") == 1);
    assert_true(number_in(plan, "train_batch_size") == 5);
    assert_true(number_in(plan, "micro_batch") == 2);
    assert_true(number_in(plan, "accumulation_steps") == 3);
    assert_true(number_in(plan, "wave") >= 1);
    assert_true(number_in(plan, "stage") == 0);
    assert_true(number_in(plan, "flops") > 0);
    const json_t *literature = json_object_get(plan, "model_flops");
    assert_true(number_in(literature, "full") > 0);
    assert_true(number_in(literature, "full") <= number_in(plan, "flops"));
    for (int i = 0; i < 5; i++) {
        assert_true(number_in(json_object_get(plan, "traffic_bytes"), traffic[i]) == 0);
    }
    check_ledger(json_object_get(plan, "ledger"));
    check_steps(plan);
    json_decref(plan);
    assert_int_not_equal(access(file_path(state, "out"), F_OK), 0);
}

// One rank, one accumulation step, one thread.
static void test_one_is_singular(void **state) {
    static const char batch[] =
        "batch 6 = micro-batch 6 x 1 accumulation step x 1 rank";
    run_file(state, classifier_run, "");
    char *text = succeed(state, LIST("plan", "run.json", "--threads", "1"));
    assert_says(text, batch);
    assert_says(text, " 1 thread\n");
    assert_says(text, "model mlp: 2 units");
    free(text);
    text = succeed(state, LIST("plan", "run.json", "--compare"));
    assert_says(text, batch);
    free(text);
}

// The same plan on a machine of a file: a result, and a trace that is JSON.
// The column at which the number of such steps ends.
static size_t column_of(const char *text, const char *kind) {
    char begin[64];
    snprintf(begin, sizeof begin, "\n    %s ", kind);
    const char *line = strstr(text, begin);
    assert_non_null(line);
    return (size_t)(strstr(line, " step") - line);
}

// Kinds of steps with long names stand in the same columns.
static void test_simulated_columns(void **state) {
    run_file(state, text_run, "");
    machine_file(state, "");
    char *text = succeed(state, LIST("simulate", "run.json", "--machine", "m.json",
                                     "--set", "train_micro_batch_size_per_gpu=1",
                                     "--set", "noise_scale.measure=true"));
    assert_int_equal(column_of(text, "micro_norm_tied"), column_of(text, "forward"));
    free(text);
}

static void test_simulate(void **state) {
    run_file(state, text_run, "");
    machine_file(state, ", \"link\": {\"inside\": {\"bytes\": 1e8}}");
    json_t *one = succeed_json(
        state, LIST("simulate", "run.json", "--machine", "m.json", "--json"));
    assert_true(number_in(one, "ranks") == 1);
    assert_true(number_in(one, "seconds") > 0);
    assert_true(number_in(one, "exposed_seconds") == 0);
    json_t *two =
        succeed_json(state, LIST("simulate", "run.json", "--machine", "m.json",
                                 "--ranks", "2", "--json", "--trace", "t.json"));
    assert_true(number_in(two, "ranks") == 2);
    assert_true(number_in(two, "communication_seconds") > 0);
    // text_run keeps a tenth of its samples for evaluations; two ranks share them.
    const json_t *alone = json_object_get(one, "evaluation");
    const json_t *shared = json_object_get(two, "evaluation");
    assert_true(number_in(alone, "samples") > 1);
    assert_true(number_in(shared, "samples") == number_in(alone, "samples"));
    assert_true(number_in(shared, "seconds") < 0.8 * number_in(alone, "seconds"));
    json_t *trace = file_json(state, "t.json");
    assert_true(json_array_size(json_object_get(trace, "traceEvents")) > 20);
    char *text = succeed(state, LIST("simulate", "run.json", "--machine", "m.json"));
    assert_says(text, "machine m");
    assert_says(text, "samples/s");
    assert_says(text, "an evaluation of ");
    free(text);
    text = succeed(state, LIST("simulate", "run.json", "--machine", "m.json", "--set",
                               "evaluation.samples=3"));
    assert_says(text, "an evaluation of 3 samples takes ");
    fail_with(state, NULL,
              LIST("simulate", "run.json", "--machine", "m.json", "--trace", "no/t"), 5,
              LIST("no/t", "No such file"));
    free(text);
    json_decref(trace);
    json_decref(two);
    json_decref(one);
}

#define MACHINE_FOR(target)                                                            \
    "{\"name\": \"m\", \"ranks_per_node\": 8, \"target\": {" target                    \
    "}, \"compute\": {\"flops\": 1e9, \"bytes\": 1e9}}"

// A plan is made for what the machine file says; threads that the user gives count.
static void test_plan_for_a_target(void **state) {
    run_file(state, text_run, "");
    file_text(state, "m.json", MACHINE_FOR("\"level\": \"generic\", \"workers\": 7"));
    char *text = succeed(state, LIST("plan", "run.json", "--machine", "m.json"));
    assert_says(text, "kernels: generic, 7 threads\n");
    free(text);
    text = succeed(state,
                   LIST("plan", "run.json", "--machine", "m.json", "--threads", "3"));
    assert_says(text, "kernels: generic, 3 threads\n");
    free(text);
    file_text(state, "m.json", MACHINE_FOR("\"backend\": \"tpu\""));
    fail_with(state, NULL, LIST("plan", "run.json", "--machine", "m.json"), 2,
              LIST("m.json:1: target.backend is \"tpu\"", "\"cpu\", \"cuda\""));
    file_text(state, "m.json", MACHINE_FOR("\"backend\": \"cuda\""));
    fail_with(
        state, NULL,
        LIST("plan", "run.json", "--machine", "m.json", "--set", "device=cpu"), 2,
        LIST("device is \"cpu\", but the machine file's target.backend is \"cuda\""));
    file_text(state, "m.json", MACHINE_FOR("\"level\": \"avx1024\""));
    fail_with(state, NULL, LIST("plan", "run.json", "--machine", "m.json"), 2,
              LIST("m.json: target.level is \"avx1024\"", "\"generic\" to"));
    file_text(state, "m.json", MACHINE_FOR("\"level\": \"avx512\""));
    setenv("DNNL_MAX_CPU_ISA", "SSE41", 1); // as on a processor that has no more
    fail_with(state, NULL, LIST("plan", "run.json", "--machine", "m.json"), 2,
              LIST("target.level is avx512", "up to generic: leave the key out"));
    unsetenv("DNNL_MAX_CPU_ISA");
}

// It is said before anything else.
static void test_a_device_that_is_not_there(void **state) {
    const setting no_gpu = {.environment = {"CUDA_VISIBLE_DEVICES="}};
    run_file(state, classifier_run, "");
    fail_with(state, &no_gpu, LIST("train", "run.json", "--set", "device=cuda"), 2,
              LIST("device is \"cuda\", but no CUDA device: ",
                   "; set device to \"cpu\", or leave it out"));
    fail_with(state, &no_gpu, LIST("train", "run.json", "--set", "device=cuda:1"), 2,
              LIST("device is \"cuda:1\", but no CUDA device: "));
    char *text = succeed(
        state, LIST("plan", "run.json", "--set", "device=cuda", "--ranks", "1"));
    assert_says(text, "kernels: sm_90");
    free(text);
}

// Without a file it is this machine, measured once and then known.
static void test_simulate_here(void **state) {
    char cache[512];
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", (const char *)*state);
    const setting own_cache = {.environment = {cache}};
    run_file(state, classifier_run, "");
    outcome o = run_with(state, &own_cache, LIST("simulate", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "machine this machine, 1 rank of");
    assert_says(o.out, "samples/s");
    assert_says(o.err, "measuring this machine");
    outcome again = run_with(state, &own_cache, LIST("simulate", "run.json"));
    assert_int_equal(again.status, 0);
    assert_string_equal(again.out, o.out);
    assert_null(strstr(again.err, "measuring"));
    outcome_free(&again);
    outcome_free(&o);
}

// What is measured is a machine file, of which a simulation says the same as of this
// machine.
static void test_calibrate(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("calibrate", "run.json", "--out", "here.json")));
    char *by_file =
             succeed(state, LIST("simulate", "run.json", "--machine", "here.json")),
         *here = succeed(state, LIST("simulate", "run.json")),
         *text = succeed(state, LIST("calibrate", "run.json"));
    assert_says(by_file, "machine this machine, 1 rank of");
    assert_string_equal(by_file, here);
    assert_says(text, "\"measured here, with the model's kernels\"");
    assert_says(text, "\"ops\"");
    fail_with(state, NULL, LIST("calibrate", "run.json", "--out", "no/here.json"), 5,
              LIST("no/here.json"));
    free(by_file);
    free(here);
    free(text);
}

// The trace of a real step has the same form.
static void test_train_trace(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--trace", "t.json")));
    json_t *trace = file_json(state, "t.json");
    const json_t *events = json_object_get(trace, "traceEvents");
    const json_t *process = json_object_get(json_array_get(events, 0), "args");
    assert_string_equal(json_string_value(json_object_get(process, "name")),
                        "rank 0 of 1, step 2");
    json_decref(trace);
    outcome o = run(state, LIST("train", "run.json", "--resume", "never", "--trace",
                                "u.json", "--trace-step", "7"));
    assert_int_equal(o.status, 0);
    assert_says(
        o.err,
        "no trace was written: --trace-step is 7, and the run ended after step 6");
    outcome_free(&o);
    assert_int_not_equal(access(file_path(state, "u.json"), F_OK), 0);
}

// A model far beyond any memory is planned in little: nothing of it is allocated.
static void test_plan_takes_nothing(void **state) {
    static const setting little = {.memory_limit = INT64_C(512) << 20};
    if (!CAN_LIMIT_MEMORY) {
        skip();
    }
    file_text(state, "run.json",
              "{\"model\": \"gpt2-xl\", \"train_batch_size\": 64, "
              "\"train_micro_batch_size_per_gpu\": 1}");
    outcome o = run_with(state, &little, LIST("plan", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "model gpt2: 50 units, 1557611200 parameters");
    assert_says(o.out, "micro-batch 1 x 64 accumulation steps");
    outcome_free(&o);
    o = run_with(
        state, &little,
        LIST("plan", "run.json", "--json", "--set",
             "model={\"model_type\": \"gpt2\", \"n_embd\": 1000000, \"n_head\": "
             "1000}"));
    assert_int_equal(o.status, 0);
    json_t *plan = json_loads(o.out, 0, NULL);
    const json_t *device = json_object_get(json_object_get(plan, "ledger"), "device");
    assert_true(number_in(device, "parameters") > 1e14);
    json_decref(plan);
    outcome_free(&o);
}

// A plan needs no data, no length, no out folder; --ranks 1 is what there is.
static void test_plan_alone(void **state) {
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [100, 500, 10]}, "
              "\"train_batch_size\": 64}");
    char *a = succeed(state, LIST("plan", "run.json"));
    char *b = succeed(state, LIST("plan", "run.json", "--ranks", "1"));
    char *c = succeed(state, LIST("plan", "run.json", "--set", "train_batch_size=65"));
    assert_says(a, "55510 parameters");
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    free(a);
    free(b);
    free(c);
    char *d = succeed(state, LIST("plan", "run.json", "--ranks", "2"));
    assert_says(d, "x 2 ranks");
    assert_says(d, "reduced");
    free(d);
    // Data that are there are looked at.
    file_text(state, "bad.csv", "1,x,0\n");
    fail_with(state, NULL,
              LIST("plan", "run.json", "--set", "data.format=csv", "--data", "bad.csv"),
              4, LIST("bad.csv:1:2: 'x' is not a number"));
}

// ---- inspect

// A plan may be for another machine: that this one has no memory for it is a remark.
static void test_plan_too_large_for_here(void **state) {
    static const char remark[] = "warning: the plan needs ";
    run_file(state, text_run, "");
    outcome o = run(state, LIST("plan", "run.json"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, remark));
    outcome_free(&o);
    o = run(state, LIST("plan", "run.json", "--set", "model.n_layer=96", "--set",
                        "model.n_embd=65536", "--set", "model.n_head=512"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, remark);
    assert_says(o.err, "TiB of memory, this machine has ");
    assert_says(o.out, "parameters");
    outcome_free(&o);
}

// A check writes nothing into the run's folder, and so has nothing to say of what is
// there.
static void test_check_beside_checkpoints(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    outcome o = run(state, LIST("check", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "the cuts agree");
    assert_null(strstr(o.err, "checkpoint"));
    assert_null(strstr(o.err, "removed"));
    outcome_free(&o);
    size_t bytes;
    free(file_read(state, "out/checkpoints/latest/state.json", &bytes));
    o = run(state, LIST("train", "run.json", "--resume", "never"));
    assert_says(o.err, "they are removed when this run saves its first");
    outcome_free(&o);
}

static void test_inspect_weights(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    static const char *const paths[] = {"out", "out/checkpoints/latest",
                                        "out/checkpoints/step-00000008",
                                        "out/checkpoints/latest/model.safetensors"};
    for (int i = 0; i < 4; i++) {
        json_t *found = succeed_json(state, LIST("inspect", paths[i], "--json"));
        const json_t *model = json_object_get(found, "model");
        assert_string_equal(json_string_value(json_object_get(found, "kind")),
                            i < 3 ? "checkpoint" : "weights");
        assert_true(number_in(model, "tensor_count") == 4);
        assert_true(number_in(model, "elements") == 6 * 9 + 9 + 9 * 3 + 3);
        if (i < 3) {
            assert_true(number_in(json_object_get(found, "state"), "step") == 8);
            assert_true(number_in(json_object_get(found, "optimizer"), "elements") ==
                        2 * (6 * 9 + 9 + 9 * 3 + 3));
        }
        json_decref(found);
        char *text = succeed(state, LIST("inspect", paths[i]));
        assert_says(text, "layers.0.weight");
        assert_says(text, "[9, 6]");
        free(text);
    }
    fail_with(state, NULL, LIST("inspect", "nothere"), 5, LIST("nothere"));
}

static json_t *survey(void **state, const char *path, const char *format) {
    json_t *found = succeed_json(state, LIST("inspect", path, "--json"));
    assert_string_equal(json_string_value(json_object_get(found, "kind")), "dataset");
    assert_string_equal(json_string_value(json_object_get(found, "format")), format);
    assert_string_equal(json_string_value(json_object_get(found, "path")), path);
    assert_true(number_in(found, "files") >= 1);
    return found;
}

static void test_inspect_bytes(void **state) {
    uint16_t ids[1000];
    for (int i = 0; i < 1000; i++) {
        ids[i] = (uint16_t)(i % 700);
    }
    file_words(state, "text.txt", 4097);
    file_write(state, "ids.bin", ids, sizeof ids);
    file_text(state, "utf8.txt",
              "Gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80\n");
    file_text(state, "cut.txt", "\xc3 is no text");
    json_t *found = survey(state, "text.txt", "bytes");
    assert_true(json_is_true(json_object_get(found, "text")));
    assert_true(number_in(found, "bytes") == 4097);
    assert_true(number_in(found, "positions") == 1024);
    assert_true(number_in(found, "samples") == 4);
    json_decref(found);
    found = survey(state, "ids.bin", "bytes");
    assert_true(json_is_false(json_object_get(found, "text")));
    assert_true(number_in(found, "largest_u16") == 699);
    json_decref(found);
    found = survey(state, "utf8.txt", "bytes");
    assert_true(json_is_true(json_object_get(found, "text")));
    json_decref(found);
    found = survey(state, "cut.txt", "bytes");
    assert_true(json_is_false(json_object_get(found, "text")));
    json_decref(found);
    found = survey(state, ".", "bytes");
    assert_true(number_in(found, "files") == 3); // ids.bin is binary
    json_decref(found);
    char *text = succeed(state, LIST("inspect", "text.txt", "--positions", "16"));
    assert_says(text, "text: 1 file");
    assert_says(text, "256 samples of 16 positions");
    free(text);
    text = succeed(state, LIST("inspect", "ids.bin", "--positions", "99"));
    assert_says(text, "\"tokens\"");
    assert_says(text, "10 samples of 99 positions, largest id 699");
    free(text);
}

// Which width ids have, as far as they tell.
static void test_inspect_ids(void **state) {
    enum { COUNT = 200 };
    uint16_t narrow[COUNT];
    uint32_t wide[COUNT];
    for (int i = 0; i < COUNT; i++) {
        narrow[i] = (uint16_t)(i * 229 + 1000);
        wide[i] = narrow[i];
    }
    file_write(state, "narrow.bin", narrow, sizeof narrow);
    file_write(state, "wide.bin", wide, sizeof wide);
    char *text = succeed(state, LIST("inspect", "narrow.bin"));
    assert_says(text, "\"dtype\": \"u16\"}");
    assert_says(text, "they look like it");
    assert_null(strstr(text, "\"u32\""));
    free(text);
    text = succeed(state, LIST("inspect", "wide.bin"));
    assert_says(text, "\"dtype\": \"u32\"}: 0 samples of 1024 positions, largest id "
                      "46571; they look like it");
    assert_null(strstr(text, "\"u16\""));
    free(text);
    json_t *found = succeed_json(state, LIST("inspect", "wide.bin", "--json"));
    assert_true(number_in(found, "token_bits") == 32);
    assert_true(number_in(found, "largest_u32") == 46571);
    json_decref(found);
    assert_int_equal(mkdir(file_path(state, "d"), 0777), 0);
    file_text(state, "d/.x", "hidden");
    file_text(state, "d/text", "text");
    file_write(state, "d/bin", narrow, sizeof narrow);
    text = succeed(state, LIST("inspect", "d"));
    assert_says(text, "passed   over 1 hidden and 1 binary");
    assert_says(text, "text: 1 file");
    free(text);
}

static void test_inspect_tables(void **state) {
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': "
                                 "(3, 2, 2), }";
    char npy[128 + 48] = "\x93NUMPY\x01";
    memset(npy + 10, ' ', 118);
    memcpy(npy + 10, header, sizeof header - 1);
    npy[8] = 118;
    npy[127] = '\n';
    file_write(state, "x.npy", npy, sizeof npy);
    file_text(state, "data.csv", "width,height,kind\n1,2,0\n3,4,5\n");
    file_text(state, "bad.csv", "1,2,0\n1,nan,0\n");
    json_t *found = survey(state, "x.npy", "npy");
    assert_string_equal(json_string_value(json_object_get(found, "dtype")), "F32");
    assert_int_equal(json_array_size(json_object_get(found, "shape")), 3);
    assert_true(number_in(found, "samples") == 3);
    assert_true(number_in(found, "features") == 4);
    json_decref(found);
    found = survey(state, "data.csv", "csv");
    assert_true(number_in(found, "samples") == 2);
    assert_true(number_in(found, "features") == 2);
    assert_true(number_in(found, "classes") == 6);
    json_decref(found);
    char *text = succeed(state, LIST("inspect", "x.npy"));
    assert_says(text, "F32 [3, 2, 2]: 3 samples, 4 values each");
    free(text);
    text = succeed(state, LIST("inspect", "data.csv"));
    assert_says(text, "2 samples, 2 features, labels in [0, 6)");
    free(text);
    fail_with(state, NULL, LIST("inspect", "bad.csv"), 4, LIST("bad.csv:2:2: 'nan'"));
}

// ---- diff

static void test_diff(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "a")));
    free(succeed(state, LIST("train", "run.json", "--out", "b")));
    free(succeed(state, LIST("train", "run.json", "--out", "c", "--set", "seed=2")));
    char *text = succeed(state, LIST("diff", "a", "b"));
    assert_says(text, "bit-identical");
    free(text);
    json_t *same = succeed_json(state, LIST("diff", "a", "b", "--json"));
    assert_true(json_is_true(json_object_get(same, "identical")));
    json_decref(same);
    outcome o = run(state, LIST("diff", "a", "c"));
    assert_int_equal(o.status, 1);
    assert_string_equal(o.err, "");
    assert_says(o.out, "layers.0.weight");
    outcome_free(&o);
    o = run(state, LIST("diff", "a", "c", "--json"));
    assert_int_equal(o.status, 1);
    json_t *found = json_loads(o.out, 0, NULL);
    assert_true(json_is_false(json_object_get(found, "identical")));
    json_decref(found);
    outcome_free(&o);
    fail_with(state, NULL, LIST("diff", "a", "nothere"), 5, LIST("nothere"));
    fail_with(state, NULL, LIST("diff", "run.json", "a"), 5, LIST("run.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_help),
        TEST(test_version),
        TEST(test_plan_json),
        TEST(test_one_is_singular),
        TEST(test_simulated_columns),
        TEST(test_simulate),
        TEST(test_plan_for_a_target),
        TEST(test_a_device_that_is_not_there),
        TEST(test_simulate_here),
        TEST(test_calibrate),
        TEST(test_train_trace),
        TEST(test_plan_takes_nothing),
        TEST(test_plan_alone),
        TEST(test_plan_too_large_for_here),
        TEST(test_check_beside_checkpoints),
        TEST(test_inspect_weights),
        TEST(test_inspect_bytes),
        TEST(test_inspect_ids),
        TEST(test_inspect_tables),
        TEST(test_diff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
