// Documents that share samples have nothing to do with each other: the step is that of
// the documents apart, and what one holds changes no bit of what comes of another.
// Labels: isa guard
#include "trial.h"

#include "base/batch.h"
#include "exec/executor.h"
#include "models/models.h"
#include "samples.h"
#include "snapshot.h"

#include <tranche/engine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 150, VOCABULARY = 61, SAMPLES = 14, TEXT_MAX = 1024 };

#define GPT2(dropout)                                                                  \
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 2, "       \
    "\"n_positions\": 150, \"vocab_size\": 61, \"resid_pdrop\": " dropout              \
    ", \"embd_pdrop\": 0, \"attn_pdrop\": 0}"
#define LLAMA(type, more)                                                              \
    "{\"model_type\": \"" type "\", \"num_hidden_layers\": 2, \"hidden_size\": 32, "   \
    "\"intermediate_size\": 48, \"num_attention_heads\": 4, "                          \
    "\"num_key_value_heads\": 2, \"max_position_embeddings\": 150, " more              \
    "\"vocab_size\": 61}"

static const char gpt2[] = GPT2("0"), dropping[] = GPT2("0.1"),
                  llama[] = LLAMA("llama", ""),
                  windowed[] = LLAMA("mistral", "\"sliding_window\": 20, ");

// ---- packed samples, which follow from their numbers

// Of documents that are 1 to 90 tokens long; forget: the places are those of one
// document, a mistake that lets each see those before it.
typedef struct source {
    bool forget;
    tr_dataset *dataset;
} source;

static void make_sample(int64_t sample, bool forget, int32_t *ids, int32_t *labels,
                        int32_t *places) {
    uint64_t random = (uint64_t)sample * 977 + 5;
    int64_t left = 0, place = 0;
    for (int64_t i = 0; i < LENGTH; i++, left--) {
        if (left == 0) {
            left = test_between(&random, 1, 90);
            place = 0;
        }
        ids[i] = (int32_t)test_between(&random, 0, VOCABULARY - 1);
        places[i] = (int32_t)(forget ? i : place);
        place++;
        if (i > 0) {
            labels[i - 1] = place == 1 ? TR_NO_TARGET : ids[i];
        }
    }
    labels[LENGTH - 1] = TR_NO_TARGET;
}

static tr_status read_packed(void *user, const int64_t *index, int64_t count,
                             void *const *rows, tr_error *err) {
    const source *s = user;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        make_sample(index[i], s->forget, (int32_t *)rows[0] + i * LENGTH,
                    (int32_t *)rows[1] + i * LENGTH, (int32_t *)rows[2] + i * LENGTH);
    }
    return TR_OK;
}

static void source_make(source *s, bool forget) {
    tr_error err = {0};
    *s = (source){.forget = forget};
    tr_dataset_source table = {.size = sizeof(tr_dataset_source),
                               .samples = SAMPLES,
                               .tensors = tr_batch_packed(LENGTH),
                               .vocabulary = VOCABULARY,
                               .classes = VOCABULARY,
                               .hash = 1,
                               .read = read_packed,
                               .user = s};
    trial_ok(tr_dataset_create_callback(&table, &s->dataset, &err), &err);
}

static const char *print_run(const char *model, const char *rest, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, \"steps\": 4, \"seed\": 3, %s \"optimizer\": "
             "{\"params\": {\"lr\": "
             "0.01}}, \"out\": \"unused\"}",
             model, rest);
    return text;
}

#define BATCH_OF_6                                                                     \
    "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 2, "                 \
    "\"execution\": {\"threads\": 2},"

// ---- the step of the documents apart

static const tr_check_cut *find_apart(const tr_check *check) {
    for (size_t i = 0; i < check->cut_count; i++) {
        if (strstr(check->cuts[i].name, "packed document")) {
            return &check->cuts[i];
        }
    }
    fail_msg("there is no cut with documents apart");
    return NULL;
}

static tr_check *check_of(const char *model) {
    char text[TEXT_MAX];
    source s;
    tr_error err = {0};
    tr_check *check = NULL;
    source_make(&s, false);
    run_options options = {.text = print_run(model, BATCH_OF_6, text),
                           .own_train = s.dataset};
    trial_ok(trial_check(&options, 0, &check, &err), &err);
    tr_dataset_destroy(s.dataset);
    return check;
}

static void check_apart(const char *model) {
    tr_check *check = check_of(model);
    const tr_check_cut *first = check->cuts, *cut = find_apart(check);
    double sum = 0, whole = 0;
    assert_true(check->passed);
    assert_false(cut->skipped[0]);
    assert_true(fabs(cut->loss / first->loss - 1) < 1e-6);
    for (size_t t = 0; t < check->tensor_count; t++) {
        double norm = check->tensors[t].norm, off = cut->distance[t] * norm;
        sum += off * off;
        whole += norm * norm;
    }
    if (!(sqrt(sum) < 1e-5 * sqrt(whole))) {
        fail_msg("gradients differ by %.3g of their norm", sqrt(sum / whole));
    }
    tr_check_destroy(check);
}

static void packed_documents_train_as_they_do_apart(void **state) {
    (void)state;
    check_apart(gpt2);
    check_apart(llama);
    check_apart(windowed);
}

// A leak is far beyond the tolerance, so the cut would find one.
static void a_leak_between_documents_is_found(void **state) {
    (void)state;
    source packed, leaking;
    char text[TEXT_MAX];
    tr_step_result a = TR_STEP_RESULT_INIT, b = TR_STEP_RESULT_INIT;
    source_make(&packed, false);
    source_make(&leaking, true);
    print_run(llama, BATCH_OF_6, text);
    trial t;
    trial_open_text(&t, text, packed.dataset, NULL);
    trial_steps(&t, 1, &a);
    trial_close(&t);
    trial_open_text(&t, text, leaking.dataset, NULL);
    trial_steps(&t, 1, &b);
    trial_close(&t);
    assert_int_equal(a.targets, b.targets);
    assert_true(fabs(a.grad_norm / b.grad_norm - 1) > 1e-4);
    tr_dataset_destroy(packed.dataset);
    tr_dataset_destroy(leaking.dataset);
}

static void with_dropout_the_cut_is_left_out(void **state) {
    (void)state;
    tr_check *check = check_of(dropping);
    assert_non_null(strstr(find_apart(check)->skipped, "dropout"));
    tr_check_destroy(check);
}

// ---- what a document holds

static void draw_param(tr_executor *executor, int param) {
    tr_piece piece = tr__executor_held(executor, param, -1), run;
    tr_error err = {0};
    uint64_t random = 7 + (uint64_t)param;
    for (int64_t at = 0; at < piece.count; at += run.count) {
        trial_ok(tr__executor_borrow(executor, &piece, at, &run, &err), &err);
        for (int64_t i = 0; i < run.count; i++) {
            run.data[i] = (float)test_between(&random, -100, 100) / 300;
        }
        trial_ok(tr__executor_return(executor, &run, &err), &err);
    }
}

// The logits [LENGTH, VOCABULARY] of a sample.
static float *logits_of(const tr_model *model, const int32_t *ids,
                        const int32_t *places) {
    tr_plan_request request = {.model = model,
                               .train_batch_size = 1,
                               .micro_batch = 1,
                               .accumulation_steps = 1,
                               .mesh = tr_mesh_of_data(1, 0),
                               .inference = true,
                               .all_positions = true,
                               .threads = 2};
    tr_plan *plan = NULL;
    tr_arena *arenas[TR_SPACES] = {0};
    tr_executor *executor = NULL;
    tr_error err = {0};
    trial_ok(tr_plan_make(&request, &plan, &err), &err);
    trial_ok(tr__arenas_fit(plan, arenas, &err), &err);
    trial_ok(tr__executor_create(plan, arenas, NULL, NULL, &executor, &err), &err);
    for (size_t i = 0; i < plan->param_count; i++) {
        draw_param(executor, (int)i);
    }
    void *rows[TR_BATCH_TENSORS_MAX];
    tr__batch_rows(&plan->batch, &plan->batch, tr__executor_ring(executor, 1), 1, 0,
                   rows);
    memcpy(rows[0], ids, LENGTH * sizeof *ids);
    memset(rows[1], 0, LENGTH * sizeof *ids); // all positions are asked for
    memcpy(rows[2], places, LENGTH * sizeof *places);
    trial_ok(tr__executor_run(executor, TR_SEQUENCE_INFERENCE, &(tr_run_context){0},
                              NULL, &err),
             &err);
    size_t bytes = LENGTH * VOCABULARY * sizeof(float);
    float *logits = malloc(bytes);
    assert_non_null(logits);
    memcpy(logits, tr__executor_logits(executor), bytes);
    tr__executor_destroy(executor);
    tr__arenas_destroy(arenas);
    tr_plan_destroy(plan);
    return logits;
}

static void check_bits(const char *words) {
    json_t *keys = json_loads(words, 0, NULL);
    tr_model *model = NULL;
    tr_error err = {0};
    int32_t ids[LENGTH], labels[LENGTH], places[LENGTH];
    trial_ok(tr__model_from_json(keys, "model", true, &model, &err), &err);
    tr__model_set_length(model, LENGTH, true);
    make_sample(3, false, ids, labels, places);
    int64_t second = 1;
    while (places[second] != 0) {
        second++;
    }
    assert_in_range(second, 2, LENGTH - 20);
    float *before = logits_of(model, ids, places);
    for (int64_t i = 0; i < second; i++) {
        ids[i] = (ids[i] + 17) % VOCABULARY;
    }
    float *after = logits_of(model, ids, places);
    size_t row = VOCABULARY * sizeof(float);
    assert_memory_not_equal(before, after, (size_t)second * row);
    assert_memory_equal(before + second * VOCABULARY, after + second * VOCABULARY,
                        (size_t)(LENGTH - second) * row);
    free(before);
    free(after);
    tr_model_destroy(model);
    json_decref(keys);
}

static void one_document_changes_no_bit_of_another(void **state) {
    (void)state;
    check_bits(gpt2);
    check_bits(llama);
    check_bits(windowed);
}

// ---- cuts

static void train(const char *rest, snapshot *end) {
    char text[TEXT_MAX];
    source s;
    trial t;
    source_make(&s, false);
    print_run(llama, rest, text);
    trial_open_text(&t, text, s.dataset, NULL);
    trial_steps(&t, 4, NULL);
    snapshot_take(end, &t);
    trial_close(&t);
    tr_dataset_destroy(s.dataset);
}

#define FIVE                                                                           \
    "\"train_batch_size\": 5, \"train_micro_batch_size_per_gpu\": 2, \"execution\": "  \
    "{\"reproducible\": true, \"threads\": 2, "

// An epoch's short batch is among the four.
static void no_cut_changes_a_bit_in_reproducible_mode(void **state) {
    (void)state;
    snapshot one, other;
    train(FIVE "\"wave\": 1},", &one);
    train(FIVE "\"wave\": 3, \"recompute\": \"unit\"},", &other);
    snapshot_assert_same(&one, &other);
    snapshot_free(&one);
    snapshot_free(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_documents_train_as_they_do_apart),
        cmocka_unit_test(a_leak_between_documents_is_found),
        cmocka_unit_test(with_dropout_the_cut_is_left_out),
        cmocka_unit_test(one_document_changes_no_bit_of_another),
        cmocka_unit_test(no_cut_changes_a_bit_in_reproducible_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
