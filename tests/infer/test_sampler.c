// Sampling with keys and values that are kept: the logits are those of the whole
// context computed anew for every token, in every family, precision and cut of the
// prompt.
#include "train/samples.h"
#include "train/scratch.h"
#include "train/trial.h"

#include "base/checked.h"
#include "plan/flow/plan.h"

#include <tranche/sample.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 53, TOKENS_MAX = 700 };

// How far the logits may be apart, over the largest of the two.
static double apart(const float *a, const float *b, int64_t count) {
    double difference = 0, most = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        difference = fmax(difference, fabs((double)a[i] - b[i]));
        most = fmax(most, fmax(fabs((double)a[i]), fabs((double)b[i])));
    }
    return difference / most;
}

static void random_tokens(int32_t *tokens, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = (int32_t)test_between(&seed, 0, WORDS - 1);
    }
}

typedef struct pair {
    tr_sampler *kept, *anew;
} pair;

static pair open_pair(const tr_sampler_options *options) {
    tr_sampler_options other = *options;
    tr_error err = {0};
    pair p;
    other.uncached = true;
    trial_ok(tr_sampler_open(options, &p.kept, &err), &err);
    trial_ok(tr_sampler_open(&other, &p.anew, &err), &err);
    return p;
}

static void close_pair(pair *p) {
    tr_sampler_destroy(p->kept);
    tr_sampler_destroy(p->anew);
}

// The logits behind the first `count` tokens of both.
static void compare(const pair *p, const int32_t *tokens, int64_t count,
                    double tolerance) {
    const float *kept, *anew;
    tr_error err = {0};
    trial_ok(tr_sampler_logits(p->kept, tokens, count, &kept, &err), &err);
    trial_ok(tr_sampler_logits(p->anew, tokens, count, &anew, &err), &err);
    double far = apart(kept, anew, tr_sampler_vocabulary(p->kept));
    if (!(far <= tolerance)) {
        fail_msg("after %lld tokens: %.2e apart", (long long)count, far);
    }
}

// Tokens one by one behind a prompt, and then behind another one, of which the first
// tokens are the same, and over the end of the context.
static void check(const tr_sampler_options *options, int64_t prompt, double tolerance) {
    int32_t tokens[TOKENS_MAX];
    int64_t count = options->length + 3;
    assert_true(count <= TOKENS_MAX);
    random_tokens(tokens, count, 7);
    pair p = open_pair(options);
    for (int64_t i = prompt; i <= count; i += i < options->length / 2 ? 5 : 1) {
        compare(&p, tokens, i, tolerance);
    }
    tokens[prompt / 2] = (tokens[prompt / 2] + 1) % WORDS;
    for (int64_t i = prompt; i < prompt + 3; i++) {
        compare(&p, tokens, i, tolerance);
    }
    close_pair(&p);
}

// ---- models

typedef struct family {
    const char *name, *keys;
    int64_t positions;
    int64_t ring_bytes; // with a sliding window: of a cache for pieces of 17 positions
} family;

#define SMALL                                                                          \
    "\"vocab_size\": 53, \"initializer_range\": 0.2, \"num_hidden_layers\": 2, "       \
    "\"intermediate_size\": 40, "

static const family families[] = {
    {"gpt2",
     "\"model_type\": \"gpt2\", \"vocab_size\": 53, \"initializer_range\": 0.2, "
     "\"n_layer\": 2, \"n_embd\": 30, \"n_head\": 3, \"n_positions\": 300",
     300, 0},
    {"llama",
     "\"model_type\": \"llama\", " SMALL "\"hidden_size\": 36, "
     "\"num_attention_heads\": 9, \"num_key_value_heads\": 3, "
     "\"max_position_embeddings\": 290",
     290, 0},
    {"llama-yarn",
     "\"model_type\": \"llama\", " SMALL "\"hidden_size\": 32, \"head_dim\": 66, "
     "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"rope_scaling\": "
     "{\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": "
     "64}, \"max_position_embeddings\": 256",
     256, 0},
    {"mistral",
     "\"model_type\": \"mistral\", " SMALL "\"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"sliding_window\": 70, "
     "\"max_position_embeddings\": 400",
     400, 2 /* layers */ * 2 * 2 /* heads */ * 128 * 8 * 4},
    {"qwen2",
     "\"model_type\": \"qwen2\", " SMALL "\"hidden_size\": 24, "
     "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"use_sliding_window\": "
     "true, \"sliding_window\": 9, \"max_window_layers\": 1, "
     "\"max_position_embeddings\": 200",
     200, (200 + 128) /* of either layer */ * 2 * 2 /* heads */ * 12 * 4},
    {"qwen3",
     "\"model_type\": \"qwen3\", " SMALL "\"hidden_size\": 24, \"head_dim\": 20, "
     "\"num_attention_heads\": 6, \"num_key_value_heads\": 1, "
     "\"max_position_embeddings\": 140",
     140, 0},
};
enum { FAMILIES = sizeof families / sizeof *families };

// A checkpoint of new weights; path: [size] its out folder.
static void save(void *const *state, const family *f, char *path, size_t size) {
    char text[1200];
    snprintf(path, size, "%s", scratch_path(state, f->name));
    snprintf(text, sizeof text,
             "{\"model\": {%s}, \"data\": {\"format\": \"tokens\", \"max_length\": 8}, "
             "\"steps\": 1, \"seed\": 5, \"out\": \"%s\", \"train_batch_size\": 1, "
             "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.01}}}",
             f->keys, path);
    trial_save_new(text, WORDS);
}

// In f32 they differ by rounding alone.
static void test_families(void **state) {
    char path[512];
    for (int i = 0; i < FAMILIES; i++) {
        const family *f = &families[i];
        save(state, f, path, sizeof path);
        tr_sampler_options options = {
            .size = sizeof options, .path = path, .length = f->positions, .threads = 2};
        check(&options, 1, 1e-5);
        options.piece = 17; // does not divide the context
        check(&options, f->positions - 5, 1e-5);
    }
}

// In 16 bits, as far as their rounding goes; the bounds hold against f32 as well.
static void test_halves(void **state) {
    static const struct {
        tr_dtype compute;
        double tolerance;
    } formats[] = {{TR_BF16, 6e-2}, {TR_F16, 8e-3}};
    char path[512];
    for (int i = 0; i < FAMILIES; i++) {
        save(state, &families[i], path, sizeof path);
        for (int k = 0; k < 2; k++) {
            tr_sampler_options options = {.size = sizeof options,
                                          .path = path,
                                          .length = 100,
                                          .threads = 2,
                                          .piece = 32,
                                          .compute = formats[k].compute};
            check(&options, 40, formats[k].tolerance);
        }
    }
}

static int64_t cache_bytes(const tr_sampler *sampler) {
    const tr_ledger *ledger = tr_plan_ledger(tr_sampler_token_plan(sampler));
    return ledger->bytes[TR_SPACE_DEVICE][TR_LEDGER_cache];
}

// The cache is in the ledger, to the byte: keys and values of each head and position.
static void test_ledger(void **state) {
    char path[512];
    tr_error err = {0};
    tr_sampler *sampler = NULL;
    save(state, &families[1], path, sizeof path);
    tr_sampler_options options = {
        .size = sizeof options, .path = path, .length = 100, .compute = TR_BF16};
    trial_ok(tr_sampler_open(&options, &sampler, &err), &err);
    int64_t want = 2 /* layers */ * 2 * 3 /* heads */ * 128 * 4 /* of each */ * 2;
    const tr_plan *plans[] = {tr_sampler_prompt_plan(sampler),
                              tr_sampler_token_plan(sampler)};
    for (int i = 0; i < 2; i++) {
        const tr_ledger *ledger = tr_plan_ledger(plans[i]);
        assert_int_equal(ledger->bytes[TR_SPACE_DEVICE][TR_LEDGER_cache], want);
    }
    tr_sampler_destroy(sampler);
}

// With a sliding window the cache has room for the window and a piece, rounded up to
// 128, and its logits have the bits of a cache that all positions have room in.
static void test_ring_bits(void **state) {
    char path[512];
    int32_t tokens[TOKENS_MAX];
    random_tokens(tokens, TOKENS_MAX, 11);
    for (int i = 0; i < FAMILIES; i++) {
        tr_error err = {0};
        tr_sampler *ring = NULL, *whole = NULL;
        if (families[i].ring_bytes == 0) {
            continue;
        }
        save(state, &families[i], path, sizeof path);
        tr_sampler_options options = {.size = sizeof options,
                                      .path = path,
                                      .length = families[i].positions,
                                      .threads = 2,
                                      .piece = 17};
        trial_ok(tr_sampler_open(&options, &ring, &err), &err);
        options.piece = 190; // a cache of 200 or 384
        trial_ok(tr_sampler_open(&options, &whole, &err), &err);
        int64_t few = cache_bytes(ring), all = cache_bytes(whole);
        assert_int_equal(few, families[i].ring_bytes);
        assert_true(all > few);
        for (int64_t count = 1; count <= 200; count++) { // each by the token's plan
            const float *a, *b;
            trial_ok(tr_sampler_logits(ring, tokens, count, &a, &err), &err);
            trial_ok(tr_sampler_logits(whole, tokens, count, &b, &err), &err);
            assert_memory_equal(a, b, WORDS * sizeof *a);
        }
        tr_sampler_destroy(ring);
        tr_sampler_destroy(whole);
    }
}

// Texts that begin as the one before did, for as far as that may be.
static void test_going_back(void **state) {
    char path[512];
    int32_t tokens[TOKENS_MAX];
    uint64_t seed = 23;
    random_tokens(tokens, TOKENS_MAX, 13);
    for (int i = 0; i < FAMILIES; i++) {
        save(state, &families[i], path, sizeof path);
        tr_sampler_options options = {.size = sizeof options,
                                      .path = path,
                                      .length = families[i].positions,
                                      .threads = 2,
                                      .piece = 23};
        pair p = open_pair(&options);
        int64_t count = 150;
        for (int turn = 0; turn < 24; turn++) {
            int64_t far = test_between(&seed, 0, 2) ? 30 : 100;
            compare(&p, tokens, count, 1e-5);
            int64_t back = test_between(&seed, 0, far);
            count = tr__max_i64(1, count - back);
            tokens[count] = (tokens[count] + 1) % WORDS;
            int64_t most = families[i].positions + 5;
            count = tr__min_i64(most, count + test_between(&seed, 0, far));
        }
        close_pair(&p);
    }
}

// A prompt that is not one of tokens changes nothing that is kept.
static void test_refusals(void **state) {
    char path[512];
    tr_error err = {0};
    tr_sampler_options options = {.size = sizeof options, .path = path, .length = 100};
    int32_t tokens[20];
    const float *logits;
    save(state, &families[0], path, sizeof path);
    random_tokens(tokens, 20, 3);
    pair p = open_pair(&options);
    compare(&p, tokens, 10, 1e-5);
    tokens[15] = WORDS;
    assert_int_equal(tr_sampler_logits(p.kept, tokens, 20, &logits, &err), TR_USAGE);
    assert_int_equal(tr_sampler_logits(p.kept, tokens, 0, &logits, &err), TR_USAGE);
    compare(&p, tokens, 11, 1e-5);
    close_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_families, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_halves, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_ledger, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_ring_bits, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_going_back, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_refusals, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
