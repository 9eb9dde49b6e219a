// A step whose loss is over all micro-batches, in two passes: what it takes, what runs
// twice, where there is but one, and what the proof has against it.
#include "plan/models.h"
#include "plan/ordered.h"
#include "plan/proof/prove.h"
#include "plan/units/offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { M = 2, FEW = 4, MANY = 64 };

static tr_plan_request request_of(const tr_model *model, int64_t g, int passes) {
    tr_plan_request request = test_request(model, M, g);
    request.passes = passes;
    return request;
}

static tr_plan *make(const tr_model *model, int64_t g, int passes) {
    tr_plan_request request = request_of(model, g, passes);
    return test_plan(&request);
}

// ---- memory

static int64_t device(const tr_plan *plan) {
    return tr_plan_ledger(plan)->total[TR_SPACE_DEVICE];
}

// What the loss needs of the batch: the embeddings of each micro-batch, those of all in
// one tensor and its gradient; and the sums of each loss.
static int64_t embeddings(const tr_plan *plan) {
    const tr_unit_program *head = plan->units[plan->unit_count - 1].program;
    int64_t micros = plan->request.accumulation_steps;
    return micros * (head->saved_bytes + TR_SUMS * (int64_t)sizeof(double)) +
           2 * head->wave_bytes;
}

// The loss goes by tiles, which grow with the batch until they are whole.
static int64_t tiles(const tr_plan *plan) {
    return tr_plan_ledger(plan)->bytes[TR_SPACE_DEVICE][TR_LEDGER_workspace];
}

static void memory_is_flat_up_to_256(void **state) {
    int64_t tile = 128 * 512 * (int64_t)sizeof(float);
    tr_plan *few = NULL;
    tr_model *models[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        int64_t g = (int64_t)FEW << 2 * i; // 4, 16, 64, 256
        models[i] = test_model_pairs(0.1, M * g);
        tr_plan *plan = make(models[i], g, 2);
        few = few ? few : plan;
        int64_t more = embeddings(plan) - embeddings(few) + tiles(plan) - tiles(few);
        assert_true(device(plan) - device(few) <= more + 4 * TR_ALIGNMENT);
        assert_true(tiles(plan) - tiles(few) <= tile + 4 * TR_ALIGNMENT);
        if (plan != few) {
            tr_plan_destroy(plan);
            tr_model_destroy(models[i]);
        }
    }
    tr_plan_destroy(few);
    tr_model_destroy(models[0]);
}

static void memory_grows_by_embeddings_alone(void **state) {
    (void)state;
    for (int64_t wave = 1; wave <= 4; wave *= 2) {
        tr_model *models[] = {test_model_pairs(0.1, M * FEW),
                              test_model_pairs(0.1, M * MANY)};
        tr_plan_request few = request_of(models[0], FEW, 2),
                        many = request_of(models[1], MANY, 2);
        few.wave = many.wave = wave;
        tr_plan *a = test_plan(&few), *b = test_plan(&many), *once;
        many.passes = 1;
        many.wave = 0;
        once = test_plan(&many);
        int64_t more = embeddings(b) - embeddings(a);
        assert_true(device(b) - device(a) <= more + 4 * TR_ALIGNMENT);
        const tr_ledger *x = tr_plan_ledger(a), *y = tr_plan_ledger(b);
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            bool grows = c == TR_LEDGER_activations || c == TR_LEDGER_workspace ||
                         c == TR_LEDGER_unused;
            assert_true(grows ||
                        x->bytes[TR_SPACE_DEVICE][c] == y->bytes[TR_SPACE_DEVICE][c]);
        }
        assert_true(device(once) - device(b) > (MANY - 2 * wave) * M * 1000);
        tr_plan_destroy(a);
        tr_plan_destroy(b);
        tr_plan_destroy(once);
        tr_model_destroy(models[0]);
        tr_model_destroy(models[1]);
    }
}

// ---- steps

static void what_is_below_the_loss_runs_twice(void **state) {
    (void)state;
    tr_model *model = test_model_pairs(0, M * FEW);
    tr_plan *once = make(model, FEW, 1), *twice = make(model, FEW, 2);
    int64_t below = model->unit_count - 1, head = 2;
    assert_int_equal(test_count_steps(once, TR_VERB_forward), FEW * (below + head));
    assert_int_equal(test_count_steps(twice, TR_VERB_forward),
                     FEW * (2 * below + head));
    assert_int_equal(test_count_steps(twice, TR_VERB_backward), FEW * (below + head));
    assert_int_equal(test_count_steps(once, TR_VERB_load), FEW);
    assert_int_equal(test_count_steps(twice, TR_VERB_load), 3 * FEW);
    assert_int_equal(twice->request.wave, 1);
    assert_int_equal(once->request.wave, FEW);
    tr_plan_destroy(once);
    tr_plan_destroy(twice);
    tr_model_destroy(model);
}

// Where nothing below the loss is trained, no backward asks for a second forward.
static void what_is_frozen_runs_once(void **state) {
    static const char *const all[] = {"embeddings.*", "encoder.*"};
    (void)state;
    tr_model *model = test_model_pairs(0, M * FEW);
    tr_plan_request request = request_of(model, FEW, 2);
    request.frozen = all;
    request.frozen_count = 2;
    tr_plan *plan = test_plan(&request);
    assert_int_equal(test_count_steps(plan, TR_VERB_forward),
                     FEW * (model->unit_count - 1 + 2));
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// ---- one pass

static void other_models_have_one(void **state) {
    (void)state;
    tr_model *models[] = {test_model_small_gpt2(0),
                          test_model_resnet(TR_EFFECTIVE_BATCH)};
    for (int i = 0; i < 2; i++) {
        tr_plan *plan = make(models[i], FEW, 2);
        assert_int_equal(plan->request.passes, 1);
        assert_int_equal(test_count_steps(plan, TR_VERB_load), FEW);
        tr_plan_destroy(plan);
        tr_model_destroy(models[i]);
    }
    tr_model *pairs = test_model_pairs(0, M);
    tr_plan *plan = make(pairs, 1, 2);
    assert_int_equal(plan->request.passes, 1);
    tr_plan_destroy(plan);
    tr_model_destroy(pairs);
}

static void gradients_that_leave_once_are_refused(void **state) {
    (void)state;
    tr_model *model = test_model_pairs(0, M * FEW);
    tr_plan_request request = request_of(model, FEW, 2);
    tr_error err = {0};
    tr_plan *plan = NULL;
    request.optimizer_placement = TR_SPACE_HOST;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "contrastive.passes"));
    request.reproducible = true;
    tr_plan_destroy(test_plan(&request));
    tr_model_destroy(model);
}

// ---- stages

// Each stage's plan is proved, and fits those of the others. All its units but the last
// one of the model run forward twice, and each boundary between stages is sent as
// often: but that of the last unit, where a chunk has it alone, whose backward does not
// read it.
static void stages_go_twice(void **state) {
    static const struct {
        tr_pipeline_order order;
        int64_t stages, each, sent; // boundaries, three times each
    } cases[] = {
        {TR_PIPELINE_1F1B, 2, 1, 3},
        {TR_PIPELINE_ZERO_BUBBLE, 2, 1, 3},
        {TR_PIPELINE_BREADTH_FIRST, 2, 1, 3},
        {TR_PIPELINE_1F1B, 3, 1, 6},
        {TR_PIPELINE_ZERO_BUBBLE, 4, 1, 8},
        {TR_PIPELINE_BREADTH_FIRST, 4, 1, 8},
        {TR_PIPELINE_INTERLEAVED, 2, 2, 8},
        {TR_PIPELINE_BREADTH_FIRST, 2, 2, 8},
        {TR_PIPELINE_V, 2, 2, 5},
    };
    (void)state;
    tr_model *model = test_model_pairs(0.1, M * FEW); // four units
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        tr_plan_request request = request_of(model, FEW, 2);
        request.mesh.size[TR_AXIS_PIPELINE] = cases[i / 2].stages;
        request.virtual_stages = cases[i / 2].each;
        request.pipeline_order = cases[i / 2].order;
        request.wave = 1 + i % 2;
        int64_t forward = 0, sent = 0;
        for (int64_t s = 0; s < cases[i / 2].stages; s++) {
            request.mesh.at[TR_AXIS_PIPELINE] = s;
            tr_plan *plan = test_plan(&request);
            forward += test_count_steps(plan, TR_VERB_forward);
            sent += test_count_steps(plan, TR_VERB_send);
            tr_plan_destroy(plan);
        }
        assert_int_equal(forward, FEW * (2 * (model->unit_count - 1) + 2));
        assert_int_equal(sent, FEW * cases[i / 2].sent);
    }
    tr_model_destroy(model);
}

// ---- the proof

static void refuse(tr_plan *plan, const char *words) {
    tr_error err = {0};
    assert_int_equal(tr__plan_prove(plan, &err), TR_INTERNAL);
    if (!strstr(err.message, words)) {
        fail_msg("%s", err.message);
    }
}

static size_t find_forward(const tr_plan *plan, int unit, int which) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    size_t i = 0;
    while (!tr__step_is_forward(&train->steps[i]) || train->steps[i].unit != unit ||
           which-- > 0) {
        i++;
    }
    return i;
}

// Nobody asks for the second forwards, so the proof asks why they are there.
static void a_second_forward_needs_a_reason(void **state) {
    (void)state;
    tr_model *model = test_model_pairs(0, M * FEW);
    tr_plan *plan = make(model, FEW, 2);
    plan->request.passes = 1;
    refuse(plan, "step");
    plan->request.passes = 2;
    assert_int_equal(tr__plan_prove(plan, NULL), TR_OK);
    tr_plan_step *first =
        plan->sequences[TR_SEQUENCE_TRAIN].steps + find_forward(plan, 1, 0);
    tr_plan_step *second =
        plan->sequences[TR_SEQUENCE_TRAIN].steps + find_forward(plan, 1, FEW);
    assert_true(tr__step_runs(first, TR_VARIANT_SAVES_NOTHING));
    assert_true(tr__step_runs(second, TR_VARIANT_FORWARD));
    tr_payload payload = first->payload;
    first->payload = second->payload;
    refuse(plan, "keeps what it is to make again");
    first->payload = payload;
    second->micro = 1;
    refuse(plan, "forward");
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_flat_up_to_256),
        cmocka_unit_test(memory_grows_by_embeddings_alone),
        cmocka_unit_test(what_is_below_the_loss_runs_twice),
        cmocka_unit_test(what_is_frozen_runs_once),
        cmocka_unit_test(other_models_have_one),
        cmocka_unit_test(stages_go_twice),
        cmocka_unit_test(gradients_that_leave_once_are_refused),
        cmocka_unit_test(a_second_forward_needs_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
