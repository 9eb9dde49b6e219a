// The contrastive loss in one pass and in two: a large batch is the same however it is
// cut, with dropout; and in a reproducible run two passes change no bit.
#include "base/rng.h"
#include "draws.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048, BATCH = TEST_DRAWS(4096, 512), MICRO = 16, WORDS = 3 };

static const char model[] =
    "{\"model_type\": \"bert\", \"vocab_size\": 150, \"hidden_size\": 16, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 24, "
    "\"max_position_embeddings\": 16, \"hidden_dropout_prob\": 0.1, "
    "\"attention_probs_dropout_prob\": 0.1}";

static void write_text(FILE *to, int64_t record, uint64_t which) {
    static const char *const words[] = {"who",  "it",  "men",  "on", "tide", "a",
                                        "boat", "the", "late", "is", "mud",  "waits"};
    enum { COUNT = sizeof words / sizeof *words };
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t at = tr__draw_below(COUNT, i, which, (uint64_t)record);
        fprintf(to, "%s%s", i > 0 ? " " : "", words[at]);
    }
}

static const char *write_records(void *const *state) {
    const char *path = scratch_path(state, "pairs.jsonl");
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    for (int64_t i = 0; i < BATCH; i++) {
        fprintf(to, "{\"anchor\": \"");
        write_text(to, i, 1);
        fprintf(to, "\", \"positive\": \"");
        write_text(to, i, 2);
        fprintf(to, "\"}\n");
    }
    assert_int_equal(fclose(to), 0);
    return path;
}

typedef struct setting {
    const char *records; // their file
    int batch, micro, passes;
    const char *more; // keys, each followed by a comma
} setting;

static void open_run(trial *t, const setting *s) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": %s, \"task\": \"contrastive\", \"data\": {\"format\": "
             "\"jsonl\", \"train\": [\"%s\"], \"max_length\": 6, \"tokenizer\": "
             "\"" TR_TEST_DATA "/encoders/bert/tokenizer.json\"}, \"contrastive\": "
             "{\"passes\": %d, \"learned\": true}, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"steps\": 3, \"seed\": 5, "
             "%s \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}, "
             "\"out\": \"unused\"}",
             model, s->records, s->passes, s->batch, s->micro, s->more);
    run_options options = {.text = text, .resume = "never"};
    trial_open(t, &options);
    assert_int_equal(t->plan->request.passes, s->passes);
}

// The distance of two gradients, as a share of the first one's norm.
static double distance(const snapshot *a, const snapshot *b) {
    double apart = 0, norm = 0;
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const snapshot_tensor *of = &a->tensors[i];
        const snapshot_tensor *other = snapshot_find(b, of->name);
        for (int64_t k = 0; k < of->count; k++) {
            double x = of->part[0][k], y = other->part[0][k];
            apart += (x - y) * (x - y);
            norm += x * x;
        }
    }
    assert_true(norm > 0);
    return sqrt(apart / norm);
}

static void a_large_batch_is_the_same_in_parts(void **state) {
    const setting whole = {write_records(state), BATCH, BATCH, 1, ""};
    setting parts = whole;
    snapshot gradient[2];
    tr_step_result result[2];
    parts.micro = MICRO;
    parts.passes = 2;
    for (int cut = 0; cut < 2; cut++) {
        trial t;
        open_run(&t, cut ? &parts : &whole);
        trial_steps(&t, 1, &result[cut]);
        snapshot_take_gradients(&gradient[cut], &t);
        trial_close(&t);
    }
    double apart = distance(&gradient[0], &gradient[1]);
    print_message("gradients %.3g apart, losses %.3g\n", apart,
                  fabs(result[0].loss - result[1].loss));
    assert_true(apart <= 1e-5);
    assert_true(fabs(result[0].loss - result[1].loss) <= 1e-6);
    snapshot_free(&gradient[0]);
    snapshot_free(&gradient[1]);
}

static void two_passes_change_no_bit(void **state) {
    static const char *const ways[] = {
        "", "\"execution\": {\"reproducible\": true},",
        "\"execution\": {\"reproducible\": true}, \"zero_optimization\": "
        "{\"offload_optimizer\": {\"device\": \"cpu\"}},",
        "\"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}},",
        "\"activation_checkpointing\": {\"number_checkpoints\": 2, "
        "\"cpu_checkpointing\": true, \"cpu_saved\": true},"};
    const char *records = write_records(state);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        snapshot end[2];
        for (int passes = 1; passes <= 2; passes++) {
            trial t;
            const setting s = {records, 20, 3, passes, ways[way]}; // the last one short
            open_run(&t, &s);
            trial_steps(&t, 3, NULL);
            snapshot_take(&end[passes - 1], &t);
            trial_close(&t);
        }
        snapshot_assert_same(&end[0], &end[1]);
        snapshot_free(&end[0]);
        snapshot_free(&end[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_large_batch_is_the_same_in_parts,
                                        scratch_cache, scratch_remove),
        cmocka_unit_test_setup_teardown(two_passes_change_no_bit, scratch_cache,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
