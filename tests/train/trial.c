#include "trial.h"

#include "samples.h"

void trial_ok(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail_msg("%s: %s", tr_status_words(status), err->message);
    }
}

void trial_open_kernels(trial *t, const run_options *options, int isa_limit,
                        bool reference) {
    tr_error err = {0};
    *t = (trial){0};
    trial_ok(run_open(options, &t->run, &err), &err);
    tr_plan_request request = *tr_run_plan_request(t->run);
    request.level_limit = isa_limit;
    request.reference_kernels = reference;
    trial_ok(tr_plan_make(&request, &t->plan, &err), &err);
    trial_ok(tr_engine_create(t->run, t->plan, &t->engine, &err), &err);
}

void trial_open(trial *t, const run_options *options) {
    trial_open_kernels(t, options, 0, false);
}

void trial_open_text(trial *t, const char *text, tr_dataset *train,
                     tr_dataset *validation) {
    run_options options = {.text = text,
                           .own_train = train,
                           .own_validation = validation,
                           .resume = "never"};
    trial_open(t, &options);
}

tr_status trial_check(const run_options *options, double tolerance, tr_check **out,
                      tr_error *err) {
    tr_run *run = NULL;
    tr_status status = run_make(options, &run, err);
    status = status == TR_OK ? tr_check_run(run, tolerance, out, err) : status;
    tr_run_destroy(run);
    return status;
}

void trial_close(trial *t) {
    tr_engine_destroy(t->engine);
    tr_plan_destroy(t->plan);
    tr_run_destroy(t->run);
    *t = (trial){0};
}

void trial_steps(trial *t, int64_t count, tr_step_result *results) {
    for (int64_t i = 0; i < count; i++) {
        tr_error err = {0};
        tr_step_result ignored = TR_STEP_RESULT_INIT;
        if (results) {
            results[i].size = sizeof results[i];
        }
        trial_ok(tr_engine_step(t->engine, results ? &results[i] : &ignored, &err),
                 &err);
    }
}

void trial_check_arenas(const trial *t) {
    for (int space = 0; space < TR_SPACE_NVME; space++) {
        const tr_arena *arena = t->engine->arenas[space];
        int64_t total = tr_plan_ledger(t->engine->plan)->total[space];
        assert_int_equal(arena ? (int64_t)tr__arena_high_water(arena) : 0, total);
        assert_int_equal(arena != NULL, total > 0);
    }
}

void trial_save_new(const char *text, int64_t vocabulary) {
    samples s;
    trial t;
    samples_tokens(&s, 1, 8, vocabulary, 1);
    trial_open_text(&t, text, s.dataset, NULL);
    assert_int_equal(tr_engine_save(t.engine, NULL), TR_OK);
    trial_close(&t);
    samples_free(&s);
}
