// What plans are made of: bytes and order; what cannot be planned.
// Labels: check
#include "base/checked.h"
#include "base/memory.h"
#include "models/models.h"
#include "plan/models.h"
#include "plan/ordered.h"
#include "plan/units/offsets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t device(const tr_plan *plan, tr_ledger_category category) {
    return tr_plan_ledger(plan)->bytes[TR_SPACE_DEVICE][category];
}

// ---- bytes

static void assert_sums(const tr_plan *plan) {
    const tr_ledger *ledger = tr_plan_ledger(plan);
    for (int s = 0; s < TR_SPACES; s++) {
        int64_t sum = 0;
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            assert_true(ledger->bytes[s][c] >= 0);
            sum += ledger->bytes[s][c];
        }
        assert_int_equal(sum, ledger->total[s]);
    }
    int64_t end = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        int64_t bytes = tr__round_up(buffer->bytes, TR_ALIGNMENT);
        end = tr__max_i64(end, buffer->offset + bytes);
    }
    assert_int_equal(end, ledger->total[TR_SPACE_DEVICE]);
}

static void the_small_classifier_takes_what_it_has(void **state) {
    (void)state;
    tr_model *model = test_model_mlp(); // 6-7-5-3
    tr_plan_request request = test_request(model, 4, 3);
    request.host_data_bytes = 1000;
    tr_plan *plan = test_plan(&request);
    // Weights and biases, each rounded up to 16 elements.
    int64_t elements = (48 + 16) + (48 + 16) + (16 + 16);
    assert_int_equal(tr_plan_parameters(plan), 6 * 7 + 7 + 7 * 5 + 5 + 5 * 3 + 3);
    assert_int_equal(device(plan, TR_LEDGER_parameters), elements * 4);
    assert_int_equal(device(plan, TR_LEDGER_gradients), elements * 4);
    assert_int_equal(device(plan, TR_LEDGER_optimizer), elements * 8);
    // A slot: 4 x 6 features and 4 targets, 64-byte aligned; two in each of two rings.
    assert_int_equal(device(plan, TR_LEDGER_data), 4 * (128 + 64));
    // ReLU's backward reads the results that are handed on: nothing else is saved.
    assert_int_equal(device(plan, TR_LEDGER_activations), 0);
    assert_int_equal(tr_plan_ledger(plan)->total[TR_SPACE_HOST], 1000);
    assert_sums(plan);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Elements that a block of the small GPT-2 (8 wide, context 4, 2 heads) saves: qkv,
// attention's result, its row sums, the residual stream in between, the MLP's inside.
static int64_t block_bytes(int64_t m) {
    const int64_t elements[] = {m * 4 * 24, m * 4 * 8, m * 2 * 4, m * 4 * 8,
                                m * 4 * 32};
    int64_t bytes = 0;
    for (int i = 0; i < 5; i++) {
        bytes += tr__round_up(elements[i] * 4, TR_ALIGNMENT);
    }
    return bytes;
}

static void activations_go_with_the_wave(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    for (int64_t wave = 1; wave <= 5; wave++) {
        tr_plan_request request = test_request(model, 3, 5);
        request.wave = wave;
        tr_plan *plan = test_plan(&request);
        assert_int_equal(device(plan, TR_LEDGER_activations),
                         wave * 2 * block_bytes(3));
        assert_sums(plan);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

static void recomputed_units_keep_their_boundary_only(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    for (int64_t units = 0; units <= 4; units++) {
        tr_plan_request request = test_request(model, 1, 4);
        request.wave = 2;
        request.recomputed_units = units < 4 ? units : -1;
        tr_plan *plan = test_plan(&request);
        int64_t blocks = units < 4 ? tr__max_i64(units - 1, 0) : 2;
        assert_int_equal(test_count_steps(plan, TR_VERB_recompute), 4 * blocks);
        // One that is made again lives at a time; of the others, those of the wave.
        int64_t most = tr__max_i64((2 - blocks) * 2, blocks > 0);
        assert_int_equal(device(plan, TR_LEDGER_activations) / block_bytes(1) <= most,
                         1);
        assert_sums(plan);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// But for the loss's sums, which are kept for each micro-batch.
static void memory_does_not_depend_on_the_accumulation_steps(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    int64_t total = 0, sums = 0;
    for (int64_t g = 2; g <= 64; g *= 2) {
        tr_plan_request request = test_request(model, 2, g);
        tr_plan *plan = test_plan(&request);
        int64_t now = tr_plan_ledger(plan)->total[TR_SPACE_DEVICE];
        int64_t kept =
            tr__round_up(plan->buffers[plan->statistics.buffer].bytes, TR_ALIGNMENT);
        assert_true(total == 0 || now - total == kept - sums);
        assert_true(kept - sums <= tr__round_up(g * TR_SUMS * 8, TR_ALIGNMENT) ||
                    !sums);
        total = now;
        sums = kept;
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// Bytes of the passing buffers at the fullest step: no layout takes less.
static int64_t least_passing(const tr_plan *plan, int sequence) {
    size_t steps = plan->sequences[sequence].count;
    int64_t *change = calloc(steps + 1, sizeof *change), live = 0, most = 0;
    assert_non_null(change);
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *b = &plan->buffers[i];
        if (b->sequence == sequence) {
            change[b->first] += tr__round_up(b->bytes, TR_ALIGNMENT);
            change[b->last + 1] -= tr__round_up(b->bytes, TR_ALIGNMENT);
        }
    }
    for (size_t i = 0; i < steps; i++) {
        live += change[i];
        most = tr__max_i64(most, live);
    }
    free(change);
    return most;
}

static void the_published_model_wastes_nothing(void **state) {
    (void)state;
    tr_model *model = test_model_gpt2();
    static const int64_t waves[] = {1, 2, 4, 1, 4}, recomputed[] = {0, 0, 0, -1, -1};
    for (int i = 0; i < 5; i++) {
        tr_plan_request request = test_request(model, 1, 4);
        request.wave = waves[i];
        request.recomputed_units = recomputed[i];
        tr_plan *plan = test_plan(&request);
        int64_t least = plan->persistent_bytes[TR_SPACE_DEVICE] +
                        tr__max_i64(least_passing(plan, TR_SEQUENCE_TRAIN),
                                    least_passing(plan, TR_SEQUENCE_EVALUATE));
        int64_t total = tr_plan_ledger(plan)->total[TR_SPACE_DEVICE];
        assert_int_equal(tr_plan_parameters(plan), 124439808);
        assert_int_equal(device(plan, TR_LEDGER_parameters), INT64_C(4) * 124439808);
        assert_int_equal(device(plan, TR_LEDGER_gradients), INT64_C(4) * 124439808);
        assert_int_equal(device(plan, TR_LEDGER_optimizer), INT64_C(8) * 124439808);
        assert_true(total >= least && total - least <= total / 1000);
        // Of each micro-batch the boundaries before 12 blocks and the head, or the one
        // gradient that has taken the place of the head's.
        assert_int_equal(device(plan, TR_LEDGER_boundary),
                         (13 * waves[i] + 1) * 1024 * 768 * 4);
        assert_sums(plan);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// ---- order

// Each micro-batch goes through each unit once, forward and backward, and those of a
// wave follow each other.
static void assert_passes(const tr_plan *plan, tr_verb kind) {
    int64_t g = plan->request.accumulation_steps, wave = plan->request.wave;
    for (int u = 0; u < plan->unit_count; u++) {
        int64_t next = 0;
        for (size_t i = 0; i < test_training(plan)->count; i++) {
            const tr_plan_step *step = &test_training(plan)->steps[i];
            if (step->label.verb != kind || step->unit != u) {
                continue;
            }
            assert_int_equal(step->micro, next);
            next++;
        }
        assert_int_equal(next, g);
    }
    for (size_t i = 0; i + 1 < test_training(plan)->count; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i], *after = step + 1;
        bool same = step->label.verb == kind && after->label.verb == kind &&
                    step->unit == after->unit;
        assert_true(!same || step->micro / wave == after->micro / wave);
    }
}

static void steps_are_in_order(void **state) {
    (void)state;
    tr_model *gpt2 = test_model_small_gpt2(0.1), *mlp = test_model_mlp();
    for (int i = 0; i < 2 * TEST_CASES; i++) {
        tr_plan *plan = test_plan_case(i % 2 ? gpt2 : mlp, &test_cases[i / 2]);
        assert_passes(plan, TR_VERB_forward);
        assert_passes(plan, TR_VERB_backward);
        test_assert_written_once(plan);
        test_assert_data(plan);
        test_assert_end(plan);
        test_assert_recomputed(plan);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(gpt2);
    tr_model_destroy(mlp);
}

// What an op over the whole batch asks for: every micro-batch of the step in one wave,
// segment by segment.
static void a_barrier_needs_the_whole_wave(void **state) {
    (void)state;
    tr_plan_request request = test_request(&test_model_centered, 2, 3);
    request.reproducible = true; // each micro-batch has a part of its own
    tr_plan *plan = test_plan(&request);
    tr_error err = {0};
    static const int64_t want[] = {0, 1, 2, -1, 0, 1, 2};
    size_t at = 0;
    assert_int_equal(plan->request.wave, 3);
    for (size_t i = 0; i < test_training(plan)->count && at < 7; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i];
        if (step->unit == 0 && (step->label.verb == TR_VERB_forward ||
                                step->label.verb == TR_VERB_merge)) {
            bool barrier = step->label.verb == TR_VERB_merge;
            assert_int_equal(barrier ? -1 : step->micro, want[at]);
            assert_int_equal(step->segment, at > 3);
            at++;
        }
    }
    assert_int_equal(at, 7);
    tr_plan_destroy(plan);
    request.wave = 2;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "unit second"));
    request.wave = 0;
    request.recomputed_units = -1; // saves nothing where segments pass on what is saved
    plan = test_plan(&request);
    assert_int_equal(test_count_steps(plan, TR_VERB_recompute), 0);
    tr_plan_destroy(plan);
}

// ---- the same again

static void assert_same(const tr_plan *a, const tr_plan *b) {
    assert_int_equal(a->buffer_count, b->buffer_count);
    assert_memory_equal(a->ledger.bytes, b->ledger.bytes, sizeof a->ledger.bytes);
    for (size_t i = 0; i < a->buffer_count; i++) {
        assert_int_equal(a->buffers[i].offset, b->buffers[i].offset);
        assert_int_equal(a->buffers[i].bytes, b->buffers[i].bytes);
    }
    for (int json = 0; json < 2; json++) {
        size_t length_a = 0, length_b = 0;
        char *text_a = test_plan_text(a, json, &length_a),
             *text_b = test_plan_text(b, json, &length_b);
        assert_int_equal(length_a, length_b);
        assert_memory_equal(text_a, text_b, length_a);
        free(text_a);
        free(text_b);
    }
}

static void the_same_request_gives_the_same_plan(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    for (int i = 0; i < TEST_CASES; i++) {
        tr_plan *a = test_plan_case(model, &test_cases[i]),
                *b = test_plan_case(model, &test_cases[i]);
        assert_same(a, b);
        tr_plan_destroy(a);
        tr_plan_destroy(b);
    }
    tr_model_destroy(model);
}

// ---- errors

static void refuse(const tr_plan_request *request, const char *words) {
    tr_plan *plan = NULL;
    tr_error err = {0};
    tr_status status = tr_plan_make(request, &plan, &err);
    if (status != TR_USAGE || !strstr(err.message, words)) {
        fail_msg("status %d, message '%s', not '%s'", (int)status, err.message, words);
    }
    assert_null(plan);
}

static void requests_that_cannot_be_are_refused(void **state) {
    static const char *const frozen = "*.weight";
    (void)state;
    tr_model *model = test_model_mlp();
    const tr_plan_request good = test_request(model, 2, 3);
    tr_plan_request r = good;
    r.model = NULL;
    refuse(&r, "model");
    r = good;
    r.micro_batch = 0;
    refuse(&r, "1 or more");
    r = good;
    r.accumulation_steps = -1;
    refuse(&r, "1 or more");
    r = good;
    r.train_batch_size = 7;
    refuse(&r, "7 samples");
    r = good;
    r.wave = 4;
    refuse(&r, "execution.wave is 4");
    r = good;
    r.alternating = 5;
    refuse(&r, "execution.alternating is 5");
    r = good;
    r.stage = 4;
    refuse(&r, "zero_optimization.stage is 4");
    r = good;
    r.mesh = tr_mesh_of_data(0, 0);
    refuse(&r, "0 ranks on the data axis of the mesh");
    r.mesh = tr_mesh_of_data(2, 2);
    refuse(&r, "rank 2 of 2 on the data axis of the mesh");
    r.mesh = tr_mesh_of_data(2, -1);
    refuse(&r, "rank -1 of 2 on the data axis");
    r = good;
    r.mesh.size[TR_AXIS_TENSOR] = 0;
    refuse(&r, "0 ranks on the tensor axis");
    r.mesh.size[TR_AXIS_TENSOR] = 5;
    refuse(&r, "tensor_parallel.size is 5, and no layer of this model can be cut");
    r.mesh.size[TR_AXIS_TENSOR] = 2;
    r.quantization = TR_QUANTIZED_NF4;
    r.frozen = &frozen;
    r.frozen_count = 1;
    refuse(&r, "and with quantization.base their parts multiples of a");
    r = good;
    r.mesh.size[TR_AXIS_PIPELINE] = 1 + r.model->unit_count;
    refuse(&r, "units: use as many stages at most");
    r = good;
    r.train_batch_size = 13;
    r.mesh = tr_mesh_of_data(2, 0);
    refuse(&r, "13 samples");
    r = good;
    r.optimizer_states = TR_OPTIMIZER_STATES + 1;
    refuse(&r, "5 states");
    r = good;
    r.optimizer_placement = TR_SPACE_HOST;
    r.optimizer_stays = 1;
    refuse(&r, "at least 0 and below 1");
    r.optimizer_stays = NAN;
    refuse(&r, "at least 0 and below 1");
    r.optimizer_stays = 0.5;
    r.param_placement = TR_SPACE_NVME;
    refuse(&r, "offload_optimizer.ratio below 1");
    tr_model_destroy(model);
}

static void absurd_sizes_are_refused(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    const int64_t huge[] = {INT64_C(1) << 42, INT64_C(1) << 61, INT64_MAX};
    for (int i = 0; i < 3; i++) {
        tr_plan_request r = test_request(model, 1, 1);
        r.micro_batch = huge[i];
        refuse(&r, "2^46 bytes");
        r = test_request(model, 1, 1);
        r.accumulation_steps = huge[i];
        refuse(&r, "make the micro-batch larger");
    }
    tr_plan_request r = test_request(model, INT64_C(1) << 33, 1);
    refuse(&r, "make the micro-batch or the model smaller");
    r.reference_kernels = true; // each tensor is possible, all those of a wave are not
    r.micro_batch = INT64_C(1) << 40;
    r.accumulation_steps = r.wave = INT64_C(1) << 20;
    refuse(&r, "bytes");
    tr_model_destroy(model);
}

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};

static void build_plain(tr_graph *g, const void *config) {
    (void)config;
    tr_value w = tr_graph_param(g, "w", TR_SHAPE2(5, 5), zeros);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, tr_graph_data(g, "features"), w,
                                 TR_NO_VALUE));
}

static void build_silent(tr_graph *g, const void *config) {
    (void)config;
    tr_value w = tr_graph_param(g, "w", TR_SHAPE2(5, 5), zeros);
    tr_linear(g, TR_LINEAR_OUT_IN, tr_graph_data(g, "features"), w, TR_NO_VALUE);
}

static void build_untrained(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, tr_relu(g, tr_graph_data(g, "features")));
}

static void build_next(tr_graph *g, const void *config) {
    const int64_t *width = config;
    tr_value w = tr_graph_param(g, "w", TR_SHAPE2(*width, 5), zeros);
    tr_graph_output(
        g, tr_linear(g, TR_LINEAR_OUT_IN, tr_graph_input(g, 0), w, TR_NO_VALUE));
}

static void build_head(tr_graph *g, const void *config) {
    tr_value x = config ? tr_graph_data(g, "features") : tr_graph_input(g, 0);
    tr_value w = tr_graph_shared(g, "tied", TR_SHAPE2(3, 5), zeros);
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE,
                            tr_graph_data(g, "labels"));
}

static void build_tied(tr_graph *g, const void *config) {
    (void)config;
    tr_value w = tr_graph_shared(g, "tied", TR_SHAPE2(5, 5), zeros);
    tr_graph_output(
        g, tr_linear(g, TR_LINEAR_OUT_IN, tr_graph_input(g, 0), w, TR_NO_VALUE));
}

static const int64_t all_of_it[][2] = {{0, 1}, {1, 2}, {0, 0}};
static const int64_t too_little[][2] = {{0, 1}, {1, 1}, {0, 0}};
static const int64_t not_from_first[][2] = {{1, 2}, {0, 0}};
static const int64_t overlapping[][2] = {{0, 2}, {1, 2}, {0, 0}};
static const int64_t too_much[][2] = {{0, 1}, {1, 3}, {0, 0}};

// config: [first, rows] of slices of the three classes, up to {0, 0}
static void build_sliced(tr_graph *g, const void *config) {
    const int64_t(*slice)[2] = config;
    tr_value x = tr_graph_data(g, "features");
    tr_value targets = tr_graph_data(g, "labels");
    tr_linear_cross_entropy_running running = TR_HEAD_BEGIN;
    for (; (*slice)[1] > 0; slice++) {
        tr_value w = tr_graph_shared_rows(g, "tied", TR_SHAPE2(3, 5), (*slice)[0],
                                          (*slice)[1], zeros);
        tr_graph_segment(g);
        running = tr_linear_cross_entropy_slice(g, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE,
                                                targets, (*slice)[0], running);
    }
    tr_linear_cross_entropy_slice_loss(g, running, targets);
}

static void refuse_units(const tr_model_unit *units, int count, const char *words) {
    tr_model model = {.size = sizeof(tr_model),
                      .type = "own",
                      .unit_count = count,
                      .units = units,
                      .batch = tr_batch_features(5)};
    tr_plan_request request = test_request(&model, 2, 2);
    refuse(&request, words);
    model.batch.tensor[0].desc.shape.rank = TR_RANK_MAX;
    refuse(&request, "dimensions");
}

static void models_that_do_not_fit_together_are_refused(void **state) {
    (void)state;
    static const int64_t five = 5, seven = 7;
    const tr_model_unit plain = {"plain", "plain", "a.", build_plain, NULL};
    const tr_model_unit head = {"head", "head", "h.", build_head, NULL};
    const tr_model_unit first = {"first", "first", "f.", build_head, "data"};
    const tr_model_unit next = {"next", "next", "n.", build_next, &seven};
    const tr_model_unit twin = {"twin", "next", "t.", build_next, &five};
    const tr_model_unit again = {"again", "again", "a.", build_next, &five};
    const tr_model_unit tied = {"tied", "tied", "t.", build_tied, NULL};
    const tr_model_unit silent = {"silent", "silent", "s.", build_silent, NULL};
    const tr_model_unit still = {"still", "still", "s.", build_untrained, NULL};
    refuse_units((tr_model_unit[]){silent}, 1, "has no loss");
    refuse_units((tr_model_unit[]){still}, 1, "nothing that is trained leads to");
    refuse_units((tr_model_unit[]){first, head}, 2, "is not the last");
    refuse_units((tr_model_unit[]){plain, next, twin, head}, 4, "unit twin");
    refuse_units((tr_model_unit[]){plain, again, head}, 3, "two parameters a.w");
    refuse_units((tr_model_unit[]){plain, tied, head}, 3, "tied has two shapes");
    refuse_units((tr_model_unit[]){plain, next, head}, 3, "head");
}

static void slices_that_are_not_the_whole_are_refused(void **state) {
    (void)state;
    static const struct {
        const int64_t (*slices)[2];
        const char *words;
    } sliced[] = {{too_little, "slices of tensor tied"},
                  {not_from_first, "slices of tensor tied"},
                  {overlapping, "slices of tensor tied"},
                  {too_much, "tied has no rows [1, +3)"}};
    for (int i = 0; i < 4; i++) {
        const tr_model_unit unit = {"cut", "cut", "c.", build_sliced, sliced[i].slices};
        refuse_units(&unit, 1, sliced[i].words);
    }
    const tr_model_unit good = {"cut", "cut", "c.", build_sliced, all_of_it};
    tr_model model = {.size = sizeof(tr_model),
                      .type = "own",
                      .unit_count = 1,
                      .units = &good,
                      .batch = tr_batch_features(5)};
    tr_plan_request request = test_request(&model, 2, 2);
    tr_plan_destroy(test_plan(&request));
    request.inference = true;
    refuse(&request, "has no op that gives logits");
}

static void fail_each_allocation(const tr_plan_request *request) {
    int failures = 0;
    for (tr_status status = TR_MEMORY; status != TR_OK; failures++) {
        tr_plan *plan = NULL;
        tr_error err = {0};
        tr__memory_fail_at(failures + 1);
        status = tr_plan_make(request, &plan, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_int_equal(err.status, status);
        assert_int_equal(plan != NULL, status == TR_OK);
        tr_plan_destroy(plan);
    }
    assert_true(failures > 50);
}

static void every_missing_allocation_is_an_error(void **state) {
    (void)state;
    tr_model *gpt2 = test_model_small_gpt2(0.1);
    tr_plan_request request = test_request(gpt2, 2, 3);
    request.recomputed_units = 2;
    fail_each_allocation(&request);
    request = test_request(gpt2, 1, 1);
    request.inference = true;
    fail_each_allocation(&request);
    request = test_request(&test_model_centered, 2, 3);
    fail_each_allocation(&request);
    tr_model *sliced = test_model_sliced_gpt2(0.1, 3);
    request = test_request(sliced, 2, 3);
    fail_each_allocation(&request);
    tr_model_destroy(sliced);
    tr_model_destroy(gpt2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_small_classifier_takes_what_it_has),
        cmocka_unit_test(activations_go_with_the_wave),
        cmocka_unit_test(recomputed_units_keep_their_boundary_only),
        cmocka_unit_test(memory_does_not_depend_on_the_accumulation_steps),
        cmocka_unit_test(the_published_model_wastes_nothing),
        cmocka_unit_test(steps_are_in_order),
        cmocka_unit_test(a_barrier_needs_the_whole_wave),
        cmocka_unit_test(the_same_request_gives_the_same_plan),
        cmocka_unit_test(requests_that_cannot_be_are_refused),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(models_that_do_not_fit_together_are_refused),
        cmocka_unit_test(slices_that_are_not_the_whole_are_refused),
        cmocka_unit_test(every_missing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
