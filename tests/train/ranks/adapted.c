// Run on two or four ranks: adapters, with magnitudes and without, beside layers that
// ranks of the tensor axis share, against one rank. Weights, moments and losses are the
// same but for rounding. Ranks share the layers that have adapters as they share
// others, and the adapter's product at the layer's end that is cut. A checkpoint goes
// on with one rank.
#include "graph/adapter.h"
#include "on_meshes.h"
#include "on_ranks.h"
#include "train/scratch.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024, LONG_TEXT = 4 * PATH_BYTES };

static const char *const adapters[] = {"llama", "llama-dora", "gpt2", "gpt2-dora"};
enum { ADAPTERS = sizeof adapters / sizeof *adapters };

static samples data;

static void write_adapted(char text[LONG_TEXT], const char *name, const tr_mesh *mesh,
                          const char *tensor, int stage, const char *out) {
    char at[PATH_BYTES];
    snprintf(at, sizeof at, TR_TEST_DATA "/adapters/%s", name);
    int used = snprintf(
        text, LONG_TEXT,
        "{\"model\": \"%s/base\", \"adapter\": {\"path\": \"%s/adapter\"}, \"data\": "
        "{\"order\": \"sequential\"}, \"steps\": 9, \"train_batch_size\": %d, "
        "\"train_micro_batch_size_per_gpu\": 2, "
        "\"tensor_parallel\": {\"size\": %d%s}, \"pipeline\": {\"stages\": %d}, "
        "\"zero_optimization\": {\"stage\": %d}, \"out\": \"%s\"" ADAM ONE_THREAD "}",
        at, at, BATCH, (int)mesh->size[TR_AXIS_TENSOR], tensor,
        (int)mesh->size[TR_AXIS_PIPELINE], stage, out);
    assert_in_range(used, 1, LONG_TEXT - 1);
}

static void numbers_are_those_of_one_rank(void **state) {
    static const char *const tensor[] = {"", ", \"sequence\": true"};
    (void)state;
    for (int i = 0; i < ADAPTERS; i++) {
        char text[LONG_TEXT];
        outcome one, many;
        write_adapted(text, adapters[i], &alone, "", 0, "unused");
        take_run(text, &data, NULL, "never", STEPS, false, &one);
        for (int m = 0; m < 2 * MESHES; m++) {
            const tr_mesh *mesh = &meshes[m / 2];
            if (is_of_all(mesh) && mesh->size[TR_AXIS_TENSOR] > 1) {
                write_adapted(text, adapters[i], mesh, tensor[m % 2], m % 4, "unused");
                take_run(text, &data, world, "never", STEPS, false, &many);
                assert_near(&one, &many, text);
                free_outcome(&many);
            }
        }
        free_outcome(&one);
    }
}

static bool ends_in(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

// A new adapter, whose B is 0 at first.
static void write_new(char text[LONG_TEXT], const char *base, const char *modules,
                      bool magnitudes, const tr_mesh *mesh, const char *tensor) {
    int used = snprintf(
        text, LONG_TEXT,
        "{\"model\": \"%s\", \"adapter\": {\"type\": \"lora\", \"r\": 4, \"use_dora\": "
        "%s, \"target_modules\": "
        "%s}, \"data\": {\"order\": \"sequential\"}, \"steps\": 9, "
        "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 2, "
        "\"tensor_parallel\": {\"size\": %d%s}, \"out\": \"unused\"" ADAM ONE_THREAD
        "}",
        base, magnitudes ? "true" : "false", modules, BATCH,
        (int)mesh->size[TR_AXIS_TENSOR], tensor);
    assert_in_range(used, 1, LONG_TEXT - 1);
}

// whole: what ends the names of the adapter's tensors that all ranks have. Magnitudes
// are cut where B is.
static void assert_shared(const char *text, const char *whole) {
    run_options options = options_of(text, &data, world, "never");
    trial t;
    trial_open(&t, &options);
    for (size_t p = 0; p < t.plan->param_count; p++) {
        const tr_plan_param *param = &t.plan->params[p];
        bool norm = strstr(param->stored, "norm") || strstr(param->stored, "ln_") ||
                    ends_in(param->stored, "wpe.weight");
        bool added = ends_in(param->stored, "c_proj.bias") || // behind the sum
                     ends_in(param->stored, "o_proj.bias");
        bool is_whole = norm || added || ends_in(param->stored, whole) ||
                        (ends_in(param->stored, TR_DORA_M) && whole[5] == 'B');
        if (t.plan->flats[param->flat].split == is_whole) {
            fail_msg("%s: %s is %s", text, param->stored, is_whole ? "cut" : "whole");
        }
    }
    trial_close(&t);
}

static const char llama_base[] = TR_TEST_DATA "/adapters/llama/base";
static const char gpt2_base[] = TR_TEST_DATA "/adapters/gpt2/base";

// One of which an MLP's parts are unequal, and heads have biases. folder: [PATH_BYTES]
static void draw_base(void *const *state, char *folder) {
    char text[LONG_TEXT];
    const char *out = scratch_path(state, "drawn");
    tr_error err = {0};
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"llama\", \"attention_bias\": true, "
             "\"hidden_size\": 24, "
             "\"intermediate_size\": 43, \"num_hidden_layers\": 1, "
             "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
             "\"max_position_embeddings\": 64, \"vocab_size\": 256}, \"steps\": 1, "
             "\"data\": {\"max_length\": 8}, \"train_batch_size\": 1, \"out\": \"%s\"}",
             out);
    if (tr_comm_rank(world) == 0) {
        trial_save_new(text, 256);
    }
    snprintf(folder, PATH_BYTES, "%s/checkpoints/latest", out);
    trial_ok(tr__comm_broadcast(world, 0, folder, PATH_BYTES, &err), &err);
}

// Layers that are cut along what they sum over share A with their input, and those that
// are cut by columns share B with their result, whole or a part of a stacked product.
static void bases_are_shared(void **state) {
    char drawn[PATH_BYTES];
    draw_base(state, drawn);
    const struct {
        const char *base, *modules, *whole;
    } cases[] = {
        {llama_base, "[\"o_proj\", \"down_proj\"]", "lora_B.weight"},
        {llama_base, "[\"q_proj\", \"v_proj\"]", "lora_A.weight"},
        {llama_base, "[\"k_proj\", \"gate_proj\", \"up_proj\"]", "lora_A.weight"},
        {gpt2_base, "[\"c_attn\", \"c_fc\"]", "lora_A.weight"},
        {drawn, "[\"v_proj\", \"up_proj\"]", "lora_A.weight"},
    };
    static const char *const tensor[] = {"", ", \"sequence\": true"};
    int64_t ranks = tr_comm_ranks(world);
    // On four ranks of the tensor axis Llama's heads of keys are repeated.
    const tr_mesh of[2] = {{.size = {ranks / 2, 2, 1}}, {.size = {1, ranks, 1}}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *base = cases[i / 2].base, *modules = cases[i / 2].modules;
        char text[LONG_TEXT];
        outcome one, many;
        write_new(text, base, modules, i % 2, &alone, "");
        take_run(text, &data, NULL, "never", STEPS, false, &one);
        for (int s = 0; s < 2; s++) {
            write_new(text, base, modules, i % 2, &of[s], tensor[s]);
            assert_shared(text, cases[i / 2].whole);
            take_run(text, &data, world, "never", STEPS, false, &many);
            assert_near(&one, &many, text);
            free_outcome(&many);
        }
        free_outcome(&one);
    }
}

static void a_checkpoint_goes_on_with_one_rank(void **state) {
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 2, 2, 1}};
    char path[PATH_BYTES], one[LONG_TEXT], many[LONG_TEXT], last[LONG_TEXT];
    tr_error err = {0};
    snprintf(path, sizeof path, "%s", scratch_path(state, "out"));
    trial_ok(tr__comm_broadcast(world, 0, path, PATH_BYTES, &err), &err);
    for (int i = 0; i < ADAPTERS; i++) {
        char out[2 * PATH_BYTES];
        snprintf(out, sizeof out, "%s/%s", path, adapters[i]);
        write_adapted(one, adapters[i], &alone, "", 0, "unused");
        write_adapted(many, adapters[i], &mesh, "", 1, out);
        write_adapted(last, adapters[i], &alone, "", 0, out);
        assert_goes_on(one, many, last, &data);
    }
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_one_rank),
        cmocka_unit_test_setup_teardown(bases_are_shared, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_checkpoint_goes_on_with_one_rank,
                                        scratch_make, scratch_remove)};
    samples_tokens(&data, STEPS * BATCH, 64, 256, 6);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    samples_free(&data);
    return failed;
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}
