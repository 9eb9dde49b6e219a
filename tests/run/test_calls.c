// Labels: check
// A run made by calls: what each says and asks, and what it answers to bad input, after
// which the run is as it was.
#include <tranche.h>
#include <tranche/extend/planner.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 8, 3]},\n"
    " \"data\": {\"format\": \"random\", \"samples\": 20, \"features\": 6,"
    "           \"classes\": 3},\n"
    " \"train_batch_size\": 4, \"steps\": 3, \"out\": \"out/calls\"}";

static void ok(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail_msg("%s", err->message);
    }
}

static tr_run *new_run(void) {
    tr_run *run = NULL;
    tr_error err = {0};
    ok(tr_run_create(&run, &err), &err);
    return run;
}

static tr_run *run_of(const char *file) {
    tr_run *run = new_run();
    tr_error err = {0};
    ok(tr_run_load_text(run, file, &err), &err);
    ok(tr_run_set(run, "resume", "never", &err), &err);
    return run;
}

static tr_run *loaded_run(void) {
    return run_of(text);
}

// The call has ended with TR_USAGE and these words.
#define REFUSED(call, words)                                                           \
    do {                                                                               \
        tr_error refused = {0};                                                        \
        assert_int_equal((call), TR_USAGE);                                            \
        if (!strstr(refused.message, words)) {                                         \
            fail_msg("\"%s\" does not say \"%s\"", refused.message, words);            \
        }                                                                              \
    } while (0)

static void assert_is(tr_run *run, const char *key, const char *value,
                      const char *origin) {
    const char *has = NULL, *from = NULL;
    tr_error err = {0};
    ok(tr_run_get(run, key, &has, &from, &err), &err);
    if (value) {
        assert_non_null(has);
        assert_string_equal(has, value);
    } else {
        assert_null(has);
    }
    assert_string_equal(from, origin);
}

static void resolve(tr_run *run) {
    tr_error err = {0};
    ok(tr_run_resolve(run, &err), &err);
}

static void test_values_and_origins(void **state) {
    (void)state;
    tr_run *run = loaded_run();
    tr_error err = {0};
    ok(tr_run_set(run, "seed", "5", &err), &err);
    ok(tr_run_set(run, "seed", "7", &err), &err); // the last one counts
    ok(tr_run_name_source(run, "a test", &err), &err);
    ok(tr_run_set_text(run, "out", "12", &err), &err); // no JSON
    ok(tr_run_assign(run, "checkpoint.keep=3", &err), &err);
    assert_is(run, "seed", "7", "set");
    assert_is(run, "out", "\"12\"", "a test");
    assert_is(run, "steps", "3", "file");
    assert_is(run, "epochs", NULL, "default");
    assert_is(run, "execution.wave", "\"auto\"", "default");
    ok(tr_run_set(run, "steps", "null", &err), &err); // as if it were left out
    ok(tr_run_set(run, "epochs", "2", &err), &err);
    resolve(run);
    assert_int_equal(tr_run_steps(run), 10);
    assert_is(run, "steps", "10", "derived: from epochs");
    assert_is(run, "checkpoint.keep", "3", "a test");
    assert_is(run, "resume", "\"never\"", "set");
    tr_run_destroy(run);
}

static void test_lists_of_texts(void **state) {
    (void)state;
    tr_run *run = new_run();
    tr_error err = {0};
    ok(tr_run_load_text(run, "{\"data\": {\"train\": [\"x\", \"y\"]}}", &err), &err);
    assert_is(run, "data.train", "[\"x\", \"y\"]", "file");
    ok(tr_run_add_text(run, "data.train", "1", &err), &err);
    ok(tr_run_add_text(run, "data.train", "null", &err), &err);
    assert_is(run, "data.train", "[\"1\", \"null\"]", "set");
    ok(tr_run_set(run, "data.train", "[\"z\"]", &err), &err);
    ok(tr_run_add_text(run, "data.train", "2", &err), &err);
    assert_is(run, "data.train", "[\"2\"]", "set");
    tr_run_destroy(run);
}

static void test_unknown_keys_fail_at_once(void **state) {
    (void)state;
    tr_run *run = loaded_run();
    REFUSED(tr_run_set(run, "optimizer.params.lrr", "1", &refused),
            "set: optimizer.params.lrr: no such key; did you mean");
    REFUSED(tr_run_set_text(run, "otu", "x", &refused), "did you mean \"out\"?");
    REFUSED(tr_run_add_text(run, "data.trian", "x", &refused), "data.train");
    REFUSED(tr_run_assign(run, "stpes=4", &refused), "did you mean \"steps\"?");
    REFUSED(tr_run_assign(run, "steps", &refused), "is not KEY.PATH=VALUE");
    REFUSED(tr_run_set(run, "", "1", &refused), "0 characters");
    REFUSED(tr_run_set(run, "model.n_layer.*", NULL, &refused), "value");
    REFUSED(tr_run_get(run, "otu", NULL, NULL, &refused), "did you mean \"out\"?");
    assert_is(run, "out", "\"out/calls\"", "file");
    resolve(run);
    tr_run_destroy(run);
}

// All that is wrong is said together, and then it can be set right.
static void test_problems_come_together(void **state) {
    (void)state;
    tr_run *run = new_run();
    tr_error err = {0};
    ok(tr_run_load_text(run,
                        "{\"train_batch_size\": -8, \"steps\": 3,\n"
                        " \"data\": {\"format\": \"random\", \"samples\": 20, "
                        "\"features\": 6, \"classes\": 3}}",
                        &err),
       &err);
    ok(tr_run_set(run, "checkpoint.keep", "0", &err), &err);
    assert_int_equal(tr_run_resolve(run, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "run:1: train_batch_size is -8"));
    assert_non_null(strstr(err.message, "set: checkpoint.keep is 0"));
    assert_null(tr_run_plan_request(run));
    ok(tr_run_set(run, "checkpoint.keep", "1", &err), &err);
    ok(tr_run_set(run, "train_batch_size", "4", &err), &err);
    REFUSED(tr_run_resolve(run, &refused), "the run file has no \"model\"");
    ok(tr_run_set(run, "model", "{\"model_type\": \"mlp\", \"layer_sizes\": [6, 8, 3]}",
                  &err),
       &err);
    ok(tr_run_set(run, "resume", "never", &err), &err);
    resolve(run);
    assert_non_null(tr_run_model(run));
    tr_run_destroy(run);
}

// Keys of the call stand in no file.
static void test_keys_of_the_call(void **state) {
    (void)state;
    static const char *const lines[] = {
        "\"resume\": \"never\"",   "\"ranks\": 2",
        "\"plan_only\": true",     "\"choose_device\": false",
        "\"computes_here\": true", "\"trace\": \"t.json\"",
        "\"trace_step\": 1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char file[256];
        tr_run *run = new_run();
        tr_error err = {0};
        snprintf(file, sizeof file, "{\"steps\": 3,\n %s}", lines[i]);
        ok(tr_run_load_text(run, file, &err), &err);
        assert_int_equal(tr_run_resolve(run, &err), TR_USAGE);
        assert_non_null(strstr(err.message, "run:2: "));
        assert_non_null(strstr(err.message, "no run file says this"));
        tr_run_destroy(run);
    }
    tr_run *run = loaded_run();
    tr_plan *plan = NULL;
    tr_error err = {0};
    ok(tr_run_set(run, "plan_only", "true", &err), &err);
    ok(tr_run_set(run, "ranks", "2", &err), &err);
    resolve(run);
    ok(tr_run_make_plan(run, &plan, &err), &err);
    assert_int_equal(tr_run_ranks(run), 2);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

// The samples of an evaluation: of the data, or as the file says where a plan has none.
static void test_evaluated(void **state) {
    static const struct {
        const char *validation, *samples;
        int64_t wanted;
    } all[] = {{NULL, NULL, 0},
               {"0.25", NULL, 5},
               {"0.25", "3", 3},
               {"0.25", "30", 5},
               {"[\"not/there.csv\"]", NULL, 0},
               {"[\"not/there.csv\"]", "30", 30}};
    static const char elsewhere[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 8, 3]}, "
        "\"data\": {\"format\": \"csv\", \"train\": [\"not/there.csv\"]}, "
        "\"train_batch_size\": 4, \"steps\": 3}";
    (void)state;
    assert_int_equal(tr_run_evaluated(NULL), 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool there = !all[i].validation || all[i].validation[0] != '[';
        tr_run *run = there ? loaded_run() : run_of(elsewhere);
        tr_error err = {0};
        ok(tr_run_set(run, "plan_only", "true", &err), &err);
        if (all[i].validation) {
            ok(tr_run_set(run, "data.validation", all[i].validation, &err), &err);
        }
        if (all[i].samples) {
            ok(tr_run_set(run, "evaluation.samples", all[i].samples, &err), &err);
        }
        assert_int_equal(tr_run_evaluated(run), 0); // it is not resolved
        resolve(run);
        assert_int_equal(tr_run_evaluated(run), all[i].wanted);
        tr_run_destroy(run);
    }
}

static void test_nulls(void **state) {
    (void)state;
    tr_run *run = loaded_run();
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    REFUSED(tr_run_create(NULL, &refused), "\"out\" is NULL");
    REFUSED(tr_run_load_file(run, NULL, &refused), "\"path\" is NULL");
    REFUSED(tr_run_load_file(NULL, "x", &refused), "\"run\" is NULL");
    REFUSED(tr_run_load_text(run, NULL, &refused), "\"text\" is NULL");
    REFUSED(tr_run_set(NULL, "out", "x", &refused), "\"run\" is NULL");
    REFUSED(tr_run_set(run, NULL, "x", &refused), "\"key\" is NULL");
    REFUSED(tr_run_set(run, "out", NULL, &refused), "\"value\" is NULL");
    REFUSED(tr_run_assign(run, NULL, &refused), "\"assignment\" is NULL");
    REFUSED(tr_run_name_source(run, NULL, &refused), "\"source\" is NULL");
    REFUSED(tr_run_give(run, NULL, &refused), "\"parts\" is NULL");
    REFUSED(tr_run_get(run, NULL, NULL, NULL, &refused), "\"key\" is NULL");
    REFUSED(tr_run_resolve(NULL, &refused), "\"run\" is NULL");
    REFUSED(tr_run_make_plan(NULL, &plan, &refused), "\"run\" is NULL");
    REFUSED(tr_engine_create(NULL, NULL, &engine, &refused), "\"run\" is NULL");
    assert_null(tr_run_plan_request(NULL));
    assert_null(tr_run_model(NULL));
    assert_int_equal(tr_run_steps(NULL), 0);
    tr_run_destroy(NULL);
    resolve(run);
    REFUSED(tr_run_begin(run, NULL, &refused), "\"plan\" is NULL");
    REFUSED(tr_engine_create(run, NULL, NULL, &refused), "\"out\" is NULL");
    tr_run_destroy(run);
}

static void test_sizes_of_structs(void **state) {
    (void)state;
    tr_run *run = loaded_run();
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_error err = {0};
    parts.size = 0;
    REFUSED(tr_run_give(run, &parts, &refused), "begin with TR_RUN_PARTS_INIT");
    parts.size = sizeof parts + 8;
    REFUSED(tr_run_give(run, &parts, &refused), "no older than the headers");
    parts.size = SIZE_MAX;
    REFUSED(tr_run_give(run, &parts, &refused), "tr_run_parts");
    parts.size = sizeof parts;
    ok(tr_run_give(run, &parts, &err), &err);
    tr_run_destroy(run);
}

static void test_order(void **state) {
    (void)state;
    tr_run *run = loaded_run();
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_error err = {0};
    REFUSED(tr_run_load_text(run, text, &refused), "already");
    REFUSED(tr_run_load_file(run, "x.json", &refused), "already");
    REFUSED(tr_run_make_plan(run, &plan, &refused), "call tr_run_resolve");
    REFUSED(tr_run_begin(run, plan, &refused), "call tr_run_resolve");
    REFUSED(tr_engine_create(run, plan, &engine, &refused), "call tr_run_resolve");
    resolve(run);
    REFUSED(tr_run_resolve(run, &refused), "resolved already");
    REFUSED(tr_run_set(run, "seed", "3", &refused), "changes no more");
    REFUSED(tr_run_load_text(run, text, &refused), "changes no more");
    REFUSED(tr_run_give(run, &parts, &refused), "changes no more");
    ok(tr_run_make_plan(run, &plan, &err), &err);
    ok(tr_engine_create(run, plan, &engine, &err), &err);
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    REFUSED(tr_run_load_file((run = new_run()), "/no/such/run.json", &refused),
            "/no/such/run.json");
    ok(tr_run_load_text(run, text, &err), &err); // nothing was loaded before
    tr_run_destroy(run);
}

// ---- drawn sequences

static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static void call_one(tr_run *run, uint64_t *seed, tr_error *err) {
    static const char *const keys[] = {"out",
                                       "seed",
                                       "steps",
                                       "otu",
                                       "model",
                                       "",
                                       "epochs",
                                       "data.train",
                                       "plan_only",
                                       "ranks",
                                       "resume",
                                       "memory",
                                       "train_batch_size",
                                       "zero_optimization.stage"};
    static const char *const values[] = {
        "1", "\"x\"", "null", "[1, {}]", "{\"a\": 1", "-2", "true",
        "",  "never", "\xff", "1e99",    "gpt2",      "2"};
    static const char *const texts[] = {text, "{}", "{\"steps\": ", "[]",
                                        "{\"steps\": 2, \"resume\": 1}"};
    const char *key = keys[draw(seed, sizeof keys / sizeof *keys)];
    const char *value = values[draw(seed, sizeof values / sizeof *values)];
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_plan *plan = NULL;
    const char *told = NULL, *origin = NULL;
    switch (draw(seed, 9)) {
    case 0:
        tr_run_load_text(run, texts[draw(seed, sizeof texts / sizeof *texts)], err);
        break;
    case 1:
    case 2:
        tr_run_set(run, key, value, err);
        break;
    case 3:
        tr_run_set_text(run, key, value, err);
        break;
    case 4:
        tr_run_add_text(run, key, value, err);
        break;
    case 5:
        tr_run_get(run, key, &told, &origin, err);
        break;
    case 6:
        parts.size += draw(seed, 2) * 8;
        tr_run_give(run, &parts, err);
        break;
    case 7:
        tr_run_resolve(run, err);
        break;
    default:
        tr_run_make_plan(run, &plan, err);
        tr_plan_destroy(plan);
    }
}

static void test_drawn_sequences(void **state) {
    (void)state;
    enum { SEQUENCES = 2000, CALLS = 12 };
    int resolved = 0;
    for (uint64_t sequence = 0; sequence < SEQUENCES; sequence++) {
        uint64_t seed = sequence;
        tr_run *run = draw(&seed, 2) ? loaded_run() : new_run();
        for (int i = 0; i < CALLS; i++) {
            tr_error err = {0};
            call_one(run, &seed, &err);
            if (err.status != TR_OK && !err.message[0]) {
                fail_msg("sequence %d: an error without a message", (int)sequence);
            }
        }
        resolved += tr_run_plan_request(run) != NULL;
        tr_run_destroy(run);
    }
    assert_true(resolved > SEQUENCES / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_origins),
        cmocka_unit_test(test_lists_of_texts),
        cmocka_unit_test(test_unknown_keys_fail_at_once),
        cmocka_unit_test(test_problems_come_together),
        cmocka_unit_test(test_keys_of_the_call),
        cmocka_unit_test(test_evaluated),
        cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_sizes_of_structs),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_drawn_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
