// How many flat buffers' parameters from NVMe lie in staging at once.
#include "plan/models.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_are_read_when_these_are_fetched),
        cmocka_unit_test(two_are_staged_when_parameters_are_synchronized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
