// How many threads are worth their trouble: for small and large work, on few and many
// cores; whatever the batch is cut into.
#include "plan/models.h"
#include "plan/threads.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int threads_of(const tr_plan_request *request, int cores) {
    int threads = 0;
    tr_error err = {0};
    assert_int_equal(tr__threads_that_pay(request, cores, &threads, &err), TR_OK);
    return threads;
}

static void small_work_takes_one(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 4, 1);
    (void)state;
    assert_int_equal(threads_of(&request, 1), 1);
    assert_int_equal(threads_of(&request, 2), 1);
    assert_int_equal(threads_of(&request, 16), 1);
    tr_model_destroy(model);
}

static void large_work_takes_all(void **state) {
    tr_model *model = test_model_gpt2();
    tr_plan_request request = test_request(model, 1, 1);
    (void)state;
    assert_int_equal(threads_of(&request, 1), 1);
    assert_int_equal(threads_of(&request, 2), 2);
    assert_int_equal(threads_of(&request, 16), 16);
    assert_int_equal(threads_of(&request, 256), 256);
    tr_model_destroy(model);
}

// The number grows with the micro-batch, from one to all.
static void more_work_takes_more(void **state) {
    tr_model *model = test_model_mlp();
    int before = 1;
    (void)state;
    for (int64_t m = 1; m <= 1 << 16; m *= 4) {
        tr_plan_request request = test_request(model, m, 1);
        int threads = threads_of(&request, 16);
        assert_true(threads >= before && threads <= 16);
        before = threads;
    }
    assert_int_equal(before, 16);
    tr_model_destroy(model);
}

// Placement, recomputation and wave change no bit of a run, so none changes the number.
static void no_other_choice_counts(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 256, 1);
    (void)state;
    int threads = threads_of(&request, 1024);
    assert_in_range(threads, 2, 1023);
    request.train_batch_size = 256 * 8 * 3;
    request.accumulation_steps = 8;
    request.mesh = tr_mesh_of_data(3, 0);
    request.stage = 3;
    request.wave = 8;
    request.recomputed_units = -1;
    request.recomputed_ops = 0;
    request.optimizer_placement = request.param_placement = TR_SPACE_HOST;
    request.threads = 7;
    assert_int_equal(threads_of(&request, 1024), threads);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_work_takes_one),
        cmocka_unit_test(large_work_takes_all),
        cmocka_unit_test(more_work_takes_more),
        cmocka_unit_test(no_other_choice_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
