// Planning takes time in proportion to the layers: of the processor, so that other work
// on the machine does not count. And a plan takes little memory for each of its steps.
// A sanitizer changes both, and sees the code in other tests of plans.
// Labels: slow
#include "models/models.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { FEW = 1024, MANY = 4 * FEW };

static double seconds_used(void) {
    struct rusage use;
    assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static tr_model *gpt2_of(int layers) {
    const tr_gpt2_config config = {.n_layer = layers,
                                   .n_embd = 8,
                                   .n_inner = 32,
                                   .n_head = 2,
                                   .n_positions = 4,
                                   .vocab_size = 11,
                                   .gelu_tanh = true,
                                   .layer_norm_epsilon = 1e-5,
                                   .initializer_range = 0.02};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_gpt2(&config, &model, &err), TR_OK);
    return model;
}

// Of the model and its plan, with the proof.
static double seconds_of(int layers) {
    double begin = seconds_used();
    tr_model *model = gpt2_of(layers);
    tr_plan_request request = test_request(model, 1, 2);
    request.measure = TR_MEASURE_ALWAYS;
    tr_plan *plan = test_plan(&request);
    double used = seconds_used() - begin;
    assert_true(plan->param_count > (size_t)layers * 12);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
    return used;
}

// Four times the layers take four times the time, sixteen times if anything that is
// done for each of them looks at all of them.
static void many_layers_take_their_share(void **state) {
    (void)state;
    double few = seconds_of(FEW), many = seconds_of(MANY);
    print_message("%d layers: %.3f s, %d: %.3f s\n", FEW, few, MANY, many);
    assert_true(many < 2);
    assert_true(many < 9 * few);
}

// What a plan keeps of its steps. It is never less where there are fewer of them.
static double bytes_of_steps(const tr_plan *plan) {
    double bytes = (double)(plan->operand_count * sizeof *plan->operands +
                            plan->launch_count * sizeof *plan->launches +
                            plan->prepared_count * sizeof *plan->prepared);
    for (int s = 0; s < TR_SEQUENCES; s++) {
        bytes += (double)(plan->sequences[s].count * sizeof *plan->sequences[s].steps);
    }
    return bytes;
}

// 100,000 steps in 30 MB.
static void a_step_takes_300_bytes(void **state) {
    tr_model *model = gpt2_of(30);
    (void)state;
    for (int stage = 0; stage < 4; stage += 3) {
        tr_plan_request request = test_request(model, 1, 1600);
        request.mesh = tr_mesh_of_data(stage ? 2 : 1, 0);
        request.stage = stage;
        tr_plan *plan = test_plan(&request);
        double steps = (double)plan->sequences[TR_SEQUENCE_TRAIN].count;
        double bytes = bytes_of_steps(plan);
        print_message("stage %d: %.0f steps, %.1f bytes each\n", stage, steps,
                      bytes / steps);
        assert_true(bytes / steps < 300);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_layers_take_their_share),
                                       cmocka_unit_test(a_step_takes_300_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
