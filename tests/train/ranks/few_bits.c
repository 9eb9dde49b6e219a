// Run on two or four ranks: bases in few bits beside ranks of the tensor axis, with
// adapters of both kinds. The parts stand for what the whole stands for, to the bit;
// products whose parts would cut a block are whole; weights, moments and losses are
// those of one rank but for rounding; and a checkpoint goes on with one rank.
#include "base/memory.h"
#include "base/quantized.h"
#include "files/safetensors/tensor_set.h"
#include "on_meshes.h"
#include "on_ranks.h"
#include "saved_bits.h"
#include "train/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, LONG_TEXT = 6 * PATH_BYTES, VOCABULARY = 64, BASES = 2 };
enum { KINDS = 3, HALF = STEPS / 2 };

// Two ranks share the attention's products, but in 4 bits not Llama's MLP, of whose
// inner width each would have 96 elements: one and a half of blocks. Four ranks share
// the attention in 8 bits.
static const char *const models[BASES] = {
    "{\"model_type\": \"llama\", \"attention_bias\": true, \"hidden_size\": 128, "
    "\"intermediate_size\": 192, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
    "\"max_position_embeddings\": 8, \"vocab_size\": 64}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 128, \"n_head\": 4, "
    "\"n_positions\": 8, \"vocab_size\": 64}"};
static const char *const layers[BASES] = {
    "[\"q_proj\", \"v_proj\", \"o_proj\", \"up_proj\", \"down_proj\"]",
    "[\"c_attn\", \"c_proj\"]"};
static const char *const kinds[KINDS] = {"\"base\": \"q8_0\"", "\"base\": \"nf4\"",
                                         "\"base\": \"nf4\", \"double\": true"};

// Gradients of these new weights are small: below this eps their rounding counts.
#define MILD ", \"optimizer\": {\"params\": {\"lr\": 0.01, \"eps\": 1e-4}}"

static samples data;
static char bases[BASES][PATH_BYTES];

// ---- the bases

static void make_bases(void *const *state) {
    tr_error err = {0};
    for (int b = 0; b < BASES; b++) {
        char text[LONG_TEXT], out[PATH_BYTES / 2];
        snprintf(out, sizeof out, "%s", scratch_path(state, b ? "gpt2" : "llama"));
        snprintf(text, sizeof text,
                 "{\"model\": %s, \"steps\": 1, \"train_batch_size\": 1, \"out\": "
                 "\"%s\"}",
                 models[b], out);
        if (tr_comm_rank(world) == 0) {
            trial_save_new(text, VOCABULARY);
        }
        snprintf(bases[b], PATH_BYTES, "%s/checkpoints/latest", out);
        trial_ok(tr__comm_broadcast(world, 0, bases[b], PATH_BYTES, &err), &err);
    }
}

typedef struct way {
    const char *base, *layers, *kind;
    bool magnitudes;
    const char *more; // keys of tensor_parallel
    int stage;
} way;

static void write_run_to(char text[LONG_TEXT], const way *w, const tr_mesh *mesh,
                         const char *out) {
    int used = snprintf(
        text, LONG_TEXT,
        "{\"model\": \"%s\", \"adapter\": {\"type\": \"lora\", \"r\": 4, "
        "\"lora_alpha\": 64, \"use_dora\": %s, \"target_modules\": %s}, "
        "\"quantization\": {%s}, \"data\": "
        "{\"order\": \"sequential\"}, \"steps\": 9, \"train_batch_size\": %d, "
        "\"train_micro_batch_size_per_gpu\": 2, \"tensor_parallel\": {\"size\": %d%s}, "
        "\"pipeline\": {\"stages\": %d}, \"zero_optimization\": {\"stage\": %d}, "
        "\"out\": \"%s\"" MILD ONE_THREAD "}",
        w->base, w->magnitudes ? "true" : "false", w->layers, w->kind, BATCH,
        (int)mesh->size[TR_AXIS_TENSOR], w->more, (int)mesh->size[TR_AXIS_PIPELINE],
        w->stage, out);
    assert_in_range(used, 1, LONG_TEXT - 1);
}

// ---- numbers

// The next of the meshes that have ranks of the tensor axis.
static const tr_mesh *next_mesh(int *at) {
    do {
        *at = (*at + 1) % MESHES;
    } while (!is_of_all(&meshes[*at]) || meshes[*at].size[TR_AXIS_TENSOR] == 1);
    return &meshes[*at];
}

static void numbers_are_those_of_one_rank(void **state) {
    int mesh = 0;
    make_bases(state);
    for (int i = 0; i < 2 * BASES * KINDS; i++) {
        int base = i / 2 % BASES;
        way w = {bases[base], layers[base], kinds[i / (2 * BASES)], i % 2, "", 0};
        char text[LONG_TEXT];
        outcome one, many;
        write_run_to(text, &w, &alone, "unused");
        take_run(text, &data, NULL, "never", STEPS, false, &one);
        w.more = i % 3 ? "" : ", \"sequence\": true";
        w.stage = i % 4;
        write_run_to(text, &w, next_mesh(&mesh), "unused");
        take_run(text, &data, world, "never", STEPS, false, &many);
        assert_near(&one, &many, text);
        free_outcome(&many);
        free_outcome(&one);
    }
}

// In reproducible mode.
static void data_and_stages_change_no_bit(void **state) {
    static const char *const set[] = {"execution.reproducible=true"};
    int64_t ranks = tr_comm_ranks(world);
    const tr_mesh of[] = {alone, {.size = {ranks, 1, 1}}, {.size = {ranks / 2, 1, 2}}};
    const way w = {bases[0], layers[0], kinds[1], true, "", 2};
    snapshot ends[3];
    make_bases(state);
    for (int m = 0; m < 3; m++) {
        char text[LONG_TEXT];
        trial t;
        write_run_to(text, &w, &of[m], "unused");
        run_options options = options_of(text, &data, m ? world : NULL, "never");
        options.set = set;
        options.set_count = 1;
        trial_open(&t, &options);
        trial_steps(&t, HALF, NULL);
        snapshot_gather(&ends[m], &t);
        trial_close(&t);
        snapshot_assert_same(&ends[0], &ends[m]);
    }
    for (int m = 0; m < 3; m++) {
        snapshot_free(&ends[m]);
    }
}

// ---- parts

// What the whole tensor stands for, in the order in which its codes lie.
static float *whole_values(const tr_tensor_set *set, const tr_plan_param *param) {
    const tr_stored_tensor *stored = tr__tensor_set_find_prefixed(set, param->stored);
    tr_error err = {0};
    assert_non_null(stored);
    float *x = calloc((size_t)stored->count, sizeof *x);
    float *turned = calloc((size_t)stored->count, sizeof *x);
    assert_true(x && turned);
    trial_ok(tr__tensor_read_f32(set, stored, 0, stored->count, x, &err), &err);
    if (param->transposed) {
        tr__exchange_sides(x, stored->dim[0], stored->dim[1], turned);
        memcpy(x, turned, (size_t)stored->count * sizeof *x);
    }
    if (tr__tensor_quantization(set, stored) != param->quantized) {
        trial_ok(tr__quantize_through(param->quantized, x, stored->count, &err), &err);
    }
    free(turned);
    return x;
}

// Of element i of the part's codes, the place among those of the whole.
static int64_t place_of(const tr_plan_param *param, int64_t i) {
    int64_t rows = param->plain.dim[0], columns = param->stored_shape.dim[1], one = 1;
    if (!param->transposed) {
        return tr__stride_at(&param->lies, i, &one);
    }
    int64_t own = i % rows * param->plain.dim[1] + i / rows; // as the files have it
    int64_t at = tr__stride_at(&param->lies, own, &one);
    return at % columns * param->stored_shape.dim[0] + at / columns;
}

static void check_param(const trial *t, int p, const tr_tensor_set *set) {
    const tr_plan_param *param = &t->plan->params[p];
    int64_t count = tr_shape_count(param->plain);
    tr_quantized_layout at = tr__quantized_layout(param->kept, count);
    tr_piece piece = tr__executor_held(t->engine->executor, p, -1), run;
    float *whole = whole_values(set, param);
    tr_error err = {0};
    trial_ok(tr__executor_borrow(t->engine->executor, &piece, 0, &run, &err), &err);
    assert_int_equal(run.count, param->count);
    for (int64_t i = 0; i < count; i++) {
        float value = tr__quantized_value(param->kept, &at, (void *)run.data, i);
        if (value != whole[place_of(param, i)]) {
            fail_msg("%s: element %d is %.9g, not %.9g", param->stored, (int)i, value,
                     whole[place_of(param, i)]);
        }
    }
    free(whole);
}

// Have all ranks parts of the weight, or would some cut a block?
static bool is_cut(const char *name, bool nf4, int64_t ranks) {
    bool mlp = strstr(name, ".mlp.") != NULL;
    if (strstr(name, "mlp.c_")) {
        return true; // GPT-2's: 512 / ranks
    }
    return mlp ? !nf4 && ranks == 2 : !nf4 || ranks == 2; // 192 / ranks, 128 / ranks
}

// half: what computes is of 16 bits, of which the bits are elements.
static void check_parts(const char *base, const char *text, bool nf4, bool half) {
    static const char *const keys[] = {"bf16.enabled=true"};
    run_options options = options_of(text, &data, world, "never");
    int64_t ranks = tr_comm_ranks(world);
    tr_tensor_set *set = NULL;
    tr_error err = {0};
    trial t;
    int bits = 0;
    options.set = keys;
    options.set_count = half;
    trial_ok(tr__tensor_set_open(base, &set, &err), &err);
    trial_open(&t, &options);
    for (size_t p = 0; p < t.plan->param_count; p++) {
        const tr_plan_param *param = &t.plan->params[p];
        if (param->quantized) {
            check_param(&t, (int)p, set);
            bits++;
            if (t.plan->flats[param->flat].split != is_cut(param->stored, nf4, ranks)) {
                fail_msg("%s: %s is not cut, or is", text, param->stored);
            }
        }
    }
    assert_true(bits >= 4);
    trial_close(&t);
    tr__tensor_set_close(set);
}

static void parts_are_of_the_whole(void **state) {
    const tr_mesh all = {.size = {1, tr_comm_ranks(world), 1}};
    char text[LONG_TEXT];
    make_bases(state);
    for (int i = 0; i < BASES * KINDS; i++) {
        const way w = {
            bases[i % BASES], layers[i % BASES], kinds[i / BASES], false, "", 0};
        write_run_to(text, &w, &all, "unused");
        check_parts(w.base, text, i / BASES > 0, i % 2);
    }
}

// The same bits from a folder that has them already.
static void stored_bits_are_shared(void **state) {
    const tr_mesh all = {.size = {1, tr_comm_ranks(world), 1}};
    tr_error err = {0};
    make_bases(state);
    for (int k = 1; k < KINDS; k++) {
        char text[LONG_TEXT], saved[PATH_BYTES];
        snprintf(saved, sizeof saved, "%s", scratch_path(state, k == 1 ? "4" : "4d"));
        if (tr_comm_rank(world) == 0) {
            save_in_bits(bases[0], k == 1 ? TR_QUANTIZED_NF4 : TR_QUANTIZED_NF4_DOUBLE,
                         saved);
        }
        trial_ok(tr__comm_broadcast(world, 0, saved, PATH_BYTES, &err), &err);
        const way w = {saved, layers[0], kinds[k], false, "", 0};
        write_run_to(text, &w, &all, "unused");
        check_parts(saved, text, true, k == 1);
    }
}

// ---- checkpoints

static void a_checkpoint_goes_on_with_one_rank(void **state) {
    const tr_mesh mesh = {.size = {tr_comm_ranks(world) / 2, 2, 1}};
    char out[PATH_BYTES], one[LONG_TEXT], many[LONG_TEXT], last[LONG_TEXT];
    tr_error err = {0};
    make_bases(state);
    const way w = {bases[0], layers[0], kinds[2], true, "", 1};
    snprintf(out, sizeof out, "%s", scratch_path(state, "out"));
    trial_ok(tr__comm_broadcast(world, 0, out, PATH_BYTES, &err), &err);
    write_run_to(one, &w, &alone, "unused");
    write_run_to(many, &w, &mesh, out);
    write_run_to(last, &w, &alone, out);
    assert_goes_on(one, many, last, &data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_those_of_one_rank, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(data_and_stages_change_no_bit, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(parts_are_of_the_whole, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(stored_bits_are_shared, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_checkpoint_goes_on_with_one_rank,
                                        scratch_make, scratch_remove)};
    samples_tokens(&data, STEPS * BATCH, 8, VOCABULARY, 6);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    samples_free(&data);
    return failed;
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}
