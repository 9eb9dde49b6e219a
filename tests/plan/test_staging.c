// How many flat buffers' parameters from NVMe lie in staging at once.
#include "plan/models.h"
#include "plan/ordered.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static tr_plan *on_nvme(const tr_model *model, int64_t ranks) {
    tr_plan_request request = test_request(model, 2, 3);
    request.mesh = tr_mesh_of_data(ranks, 0);
    request.train_batch_size *= ranks;
    request.optimizer_placement = TR_SPACE_NVME;
    return test_plan(&request);
}

// Where the step reads parameters to, that are fetched from there; -1: nowhere.
static int32_t staged_by(const tr_plan *plan, const tr_plan_step *step) {
    bool reads = step->label.verb == TR_VERB_read && !step->label.piece;
    return reads ? tr__step_operand(plan, step, TR_FILE_MEMORY)->buffer : -1;
}

// The most buffers of such reads that have memory at one of the steps from `first` on.
static int most_staged(const tr_plan *plan, tr_sequence_kind kind, size_t first) {
    const tr_sequence *sequence = &plan->sequences[kind];
    int most = 0;
    for (size_t at = first; at < sequence->count; at++) {
        int count = 0;
        for (size_t i = 0; i <= at; i++) {
            int32_t buffer = staged_by(plan, &sequence->steps[i]);
            count += buffer >= 0 && plan->buffers[buffer].last >= (int32_t)at;
        }
        most = count > most ? count : most;
    }
    return most;
}

static size_t first_forward(const tr_plan *plan) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    size_t i = 0;
    while (train->steps[i].label.verb != TR_VERB_forward) {
        i++;
    }
    return i;
}

// A block has as many segments as visits that parameters are read ahead, so the next
// block's are read when this block begins: where its own have been fetched. (At stage 0
// no gather waits for them before.)
static void the_next_are_read_when_these_are_fetched(void **state) {
    tr_model *model = test_model_resnet(TR_EFFECTIVE_BATCH);
    (void)state;
    tr_plan *plan = on_nvme(model, 3);
    assert_int_equal(most_staged(plan, TR_SEQUENCE_TRAIN, first_forward(plan)), 1);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// One is fetched while the next is read.
static void two_are_staged_when_parameters_are_synchronized(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    (void)state;
    for (int64_t ranks = 1; ranks <= 2; ranks++) {
        tr_plan *plan = on_nvme(model, ranks);
        assert_true(plan->flat_count > 3);
        assert_int_equal(most_staged(plan, TR_SEQUENCE_SYNC_PARAMETERS, 0), 2);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// ---- stages of a pipeline

static tr_plan_request staged(const tr_model *model, int64_t stages, int64_t stage) {
    tr_plan_request request = test_request(model, 2, 3);
    request.mesh = (tr_mesh){.size = {1, 1, stages}, .at = {0, 0, stage}};
    request.optimizer_placement = TR_SPACE_NVME;
    return request;
}

// What it has is not trained, and is read to be fetched all the same.
static void a_frozen_stage_reads_parameters(void **state) {
    static const char *const frozen[] = {"*h.1.*", "*ln_f*", "*wte*"};
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = staged(model, 2, 1);
    (void)state;
    request.param_placement = TR_SPACE_NVME;
    request.frozen = frozen;
    request.frozen_count = 3;
    tr_plan *plan = test_plan(&request);
    assert_true(test_count_steps(plan, TR_VERB_read) > 0);
    for (size_t f = 0; f < plan->flat_count; f++) {
        assert_true(plan->flats[f].frozen || plan->flats[f].count == 0);
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Its gradients stay, to be summed with other stages'.
static void a_stage_with_a_tied_tensor_alone_writes_nothing(void **state) {
    tr_model *model = test_model_qwen3(0);
    tr_plan_request request = staged(model, 4, 0);
    (void)state;
    request.grad_placement = TR_SPACE_NVME;
    request.reproducible = true;
    tr_plan *plan = test_plan(&request);
    assert_int_equal(test_count_steps(plan, TR_VERB_write), 0);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_are_read_when_these_are_fetched),
        cmocka_unit_test(two_are_staged_when_parameters_are_synchronized),
        cmocka_unit_test(a_frozen_stage_reads_parameters),
        cmocka_unit_test(a_stage_with_a_tied_tensor_alone_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
