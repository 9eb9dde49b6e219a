// tr_run_open is the calls that it stands for, and an engine without a plan is one of
// the run's own plan.
#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [5, 4, 3]},"
    " \"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 5,"
    " \"classes\": 3}, \"steps\": 9, \"train_batch_size\": 8}";
static const char *const settings[] = {"resume=never", "steps=3", "seed=5", NULL};

static double last_loss(tr_engine *engine) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error err = {0};
    while (result.step < 3) {
        assert_int_equal(tr_engine_step(engine, &result, &err), TR_OK);
    }
    return result.loss;
}

static void one_call_is_all_of_them(void **state) {
    tr_error err = {0};
    tr_run *run = NULL, *by_hand = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL, *other = NULL;
    (void)state;
    assert_int_equal(tr_run_open(text, settings, NULL, &run, &err), TR_OK);
    assert_int_equal(tr_run_steps(run), 3);
    assert_int_equal(tr_engine_create(run, NULL, &engine, &err), TR_OK);

    assert_int_equal(tr_run_create(&by_hand, &err), TR_OK);
    assert_int_equal(tr_run_load_text(by_hand, text, &err), TR_OK);
    for (int i = 0; settings[i]; i++) {
        assert_int_equal(tr_run_assign(by_hand, settings[i], &err), TR_OK);
    }
    assert_int_equal(tr_run_resolve(by_hand, &err), TR_OK);
    assert_int_equal(tr_run_make_plan(by_hand, &plan, &err), TR_OK);
    assert_int_equal(tr_engine_create(by_hand, plan, &other, &err), TR_OK);

    assert_ptr_equal(tr_engine_plan(other), plan);
    assert_ptr_not_equal(tr_engine_plan(engine), plan);
    assert_memory_equal(tr_plan_ledger(tr_engine_plan(engine)), tr_plan_ledger(plan),
                        sizeof(tr_ledger));
    assert_true(last_loss(engine) == last_loss(other));
    tr_engine_destroy(engine);
    tr_engine_destroy(other);
    tr_plan_destroy(plan);
    tr_run_destroy(by_hand);
    tr_run_destroy(run);
    assert_null(tr_engine_plan(NULL));
}

static void settings_alone_are_a_run(void **state) {
    static const char data[] = "data={\"format\": \"random\", \"samples\": 40,"
                               " \"features\": 5, \"classes\": 3}";
    const char *const all[] = {"model.model_type=mlp",
                               "model.layer_sizes=[5, 4, 3]",
                               data,
                               "steps=2",
                               "train_batch_size=8",
                               NULL};
    tr_error err = {0};
    tr_run *run = NULL;
    (void)state;
    assert_int_equal(tr_run_open(NULL, all, NULL, &run, &err), TR_OK);
    assert_int_equal(tr_run_steps(run), 2);
    tr_run_destroy(run);
}

static void refuse(const char *run_text, const char *setting, const tr_run_parts *parts,
                   const char *words) {
    const char *const set[] = {setting, NULL};
    tr_error err = {0};
    tr_run *run = NULL;
    assert_int_equal(tr_run_open(run_text, set, parts, &run, &err), TR_USAGE);
    assert_null(run);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" is not in: %s", words, err.message);
    }
}

static void what_is_wrong_leaves_no_run(void **state) {
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_error err = {0};
    (void)state;
    refuse("{", NULL, NULL, "not valid JSON");
    refuse(text, "seed", NULL, "KEY.PATH=VALUE");
    refuse(text, "sede=1", NULL, "seed");
    refuse(text, "steps=-1", NULL, "steps");
    parts.size = 3;
    refuse(text, NULL, &parts, "tr_run_parts");
    assert_int_equal(tr_run_open(text, NULL, NULL, NULL, &err), TR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call_is_all_of_them),
        cmocka_unit_test(settings_alone_are_a_run),
        cmocka_unit_test(what_is_wrong_leaves_no_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
