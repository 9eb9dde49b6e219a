// Drawn sequences of calls on a run, its plan and its engine, in any order, from this
// thread and from others, with whatever arguments: none crashes, each error has a
// message, and what is destroyed is gone. (test_drawn_asks.c draws of all other
// headers.) TR_DRAWN_SEQUENCES in the environment says how many.
#include "scratch.h"

#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

enum { SEQUENCES = 300, CALLS = 30, TEXT_MAX = 1024, VALUES = 64 };

typedef struct session {
    uint64_t seed;
    char text[TEXT_MAX];
    tr_run *run;
    tr_plan *plan;
    tr_engine *engine;
    int good; // calls on an engine that succeeded
    const char *trace, *saved;
    tr_error err; // of the newest call
} session;

static uint64_t draw(session *s, uint64_t below) {
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (s->seed >> 33) % below;
}

#define ONE_OF(s, list) ((list)[draw((s), sizeof(list) / sizeof *(list))])

// Engine, plan, run: what is above goes with what is below.
static void destroy_from(session *s, int level) {
    tr_engine_destroy(s->engine);
    s->engine = NULL;
    if (level < 2) {
        tr_plan_destroy(s->plan);
        s->plan = NULL;
    }
    if (level < 1) {
        tr_run_destroy(s->run);
        s->run = NULL;
    }
}

static bool always(void *user) {
    (void)user;
    return true;
}

// ---- one call each

static void call_run(session *s, tr_error *err) {
    static const char *const keys[] = {"steps", "train_batch_size",        "otu",
                                       "seed",  "zero_optimization.stage", "resume"};
    static const char *const values[] = {"2", "4", "-1", "null", "\"x\"", "never"};
    const char *value = NULL, *origin = NULL;
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    switch (draw(s, 7)) {
    case 0:
        if (!s->run || draw(s, 4) == 0) {
            destroy_from(s, 0);
            tr_run_create(&s->run, err);
        }
        break;
    case 1:
        tr_run_load_text(s->run, draw(s, 8) ? s->text : "{\"steps\": }", err);
        break;
    case 2:
        tr_run_set(s->run, ONE_OF(s, keys), ONE_OF(s, values), err);
        break;
    case 3:
        tr_run_get(s->run, ONE_OF(s, keys), &value, &origin, err);
        break;
    case 4:
        parts.size -= draw(s, 2);
        tr_run_give(s->run, &parts, err);
        break;
    default:
        tr_run_resolve(s->run, err);
    }
}

static void call_between(session *s, tr_error *err) {
    switch (draw(s, 6)) {
    case 0:
        destroy_from(s, 1);
        tr_run_make_plan(s->run, &s->plan, err);
        break;
    case 1:
        destroy_from(s, 2);
        tr_engine_create(s->run, s->plan, &s->engine, err);
        break;
    case 2:
        tr_run_begin(s->run, s->plan, err);
        break;
    default: // so that sequences come to an engine
        if (!s->plan) {
            tr_run_make_plan(s->run, &s->plan, err);
        } else if (!s->engine) {
            tr_engine_create(s->run, s->plan, &s->engine, err);
        }
    }
}

static void call_tensor(session *s, tr_error *err) {
    static const char *const names[] = {"layers.0.weight", "layers.1.bias",
                                        "layers.9.bias"};
    static const char *const parts[] = {"values", "gradient", "exp_avg", "exp"};
    static float values[VALUES];
    int64_t first = (int64_t)draw(s, 70) - 2, count = (int64_t)draw(s, VALUES);
    const char *name = draw(s, 9) ? ONE_OF(s, names) : NULL;
    const char *part = draw(s, 9) ? ONE_OF(s, parts) : NULL;
    tr_status status =
        draw(s, 2) ? tr_engine_read(s->engine, name, part, first, count, values, err)
                   : tr_engine_write(s->engine, name, part, first, count, values, err);
    s->good += status == TR_OK;
}

// What is seldom asked for.
static void call_beside(session *s, tr_error *err) {
    tr_save_options options = TR_SAVE_OPTIONS_INIT;
    int64_t step = 0, count = 0;
    switch (draw(s, 8)) {
    case 0:
        tr_engine_watch(s->engine, err);
        break;
    case 1:
        tr_engine_write_trace(s->engine, draw(s, 3) ? s->trace : NULL, err);
        break;
    case 2:
        tr_engine_rollback(s->engine, draw(s, 4) ? &step : NULL, err);
        break;
    case 3:
        options.size -= draw(s, 4) == 0;
        options.folder = draw(s, 3) ? s->saved : NULL;
        options.bytes = draw(s, 2) ? "mine" : NULL;
        options.byte_count = draw(s, 5);
        tr_engine_save_as(s->engine, draw(s, 5) ? &options : NULL, err);
        break;
    case 4:
        tr_engine_parameter(s->engine, draw(s, 3) ? "layers.0.weight" : NULL, &count);
        tr_engine_part(s->engine, draw(s, 6));
        break;
    case 5:
        tr_engine_blame(s->engine);
        tr_engine_groups(s->engine);
        tr_engine_arena_peak(s->engine);
        tr_engine_space_peak(s->engine, (tr_space)draw(s, 5));
        break;
    case 6:
        tr_run_steps(s->run);
        tr_run_sample(s->run, (int64_t)draw(s, 3) - 1, (int64_t)draw(s, 30) - 1);
        tr_model_targets(tr_run_model(s->run));
        tr_dataset_about(tr_run_data(s->run));
        break;
    default:
        tr_run_assign(s->run, draw(s, 2) ? "seed=3" : "seed", err);
        tr_run_add_text(s->run, draw(s, 2) ? "data.train" : "data.tran", "x", err);
        tr_run_name_source(s->run, draw(s, 3) ? "drawn" : NULL, err);
    }
}

static void call_engine(session *s, tr_error *err) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    result.size += draw(s, 16) == 0;
    evaluation.size += draw(s, 16) == 0;
    tr_tensor_info info = TR_TENSOR_INFO_INIT;
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    switch (draw(s, 11)) {
    case 0:
        tr_engine_evaluate(s->engine, (int64_t)draw(s, 9), &evaluation, err);
        break;
    case 1:
        tr_engine_stop_when(s->engine, draw(s, 4) ? NULL : always, NULL, err);
        break;
    case 2:
        tr_engine_set_rate(s->engine, draw(s, 2), (double)draw(s, 3) - 1, err);
        break;
    case 3:
        info.size += draw(s, 2);
        tr_engine_tensor(s->engine, draw(s, 6), &info, err);
        break;
    case 4:
        tr_engine_save(s->engine, err);
        break;
    case 5:
        options.size += draw(s, 2);
        options.no_files = draw(s, 2);
        tr_engine_train(s->engine, &options, err);
        break;
    case 6:
        tr_engine_refresh(s->engine, err);
        break;
    case 7:
    case 8:
        call_tensor(s, err);
        break;
    default:
        s->good += tr_engine_step(s->engine, &result, err) == TR_OK;
    }
}

static void *call_any(void *user) {
    session *s = user;
    tr_error *err = &s->err;
    uint64_t which = draw(s, 11);
    if (which < 3) {
        call_run(s, err);
    } else if (which < 5) {
        call_between(s, err);
    } else if (which < 6) {
        call_beside(s, err);
    } else {
        call_engine(s, err);
    }
    return NULL;
}

static void call_one(session *s) {
    pthread_t other;
    s->err = (tr_error){0};
    if (draw(s, 8)) {
        call_any(s);
    } else {
        assert_int_equal(pthread_create(&other, NULL, call_any, s), 0);
        pthread_join(other, NULL);
    }
    const tr_error err = s->err;
    if (err.status != TR_OK && !err.message[0]) {
        fail_msg("an error without a message");
    }
    if (err.status == TR_INTERNAL) {
        fail_msg("%s", err.message);
    }
}

// A run and an engine to begin with, so that calls meet all states.
static void begin(session *s) {
    tr_error err = {0};
    if (draw(s, 3) == 0) {
        return;
    }
    tr_run_create(&s->run, &err);
    tr_run_load_text(s->run, s->text, &err);
    if (draw(s, 4) == 0) {
        return;
    }
    tr_run_resolve(s->run, &err);
    tr_run_make_plan(s->run, &s->plan, &err);
    tr_engine_create(s->run, s->plan, &s->engine, &err);
    assert_int_equal(err.status, TR_OK);
}

static void drawn_sequences(void **state) {
    const char *asked = getenv("TR_DRAWN_SEQUENCES");
    long sequences = asked ? strtol(asked, NULL, 10) : SEQUENCES, good = 0;
    for (long i = 0; i < sequences; i++) {
        session s = {.seed = (uint64_t)i,
                     .trace = scratch_path(state, "trace.json"),
                     .saved = scratch_path(state, "saved")};
        snprintf(s.text, sizeof s.text,
                 "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
                 "\"data\": {\"format\": \"random\", \"samples\": 20, \"features\": "
                 "6, \"classes\": 3, \"validation\": 0.2}, \"train_batch_size\": 4, "
                 "\"steps\": 3, \"execution\": {\"threads\": 1}, \"optimizer\": "
                 "{\"type\": \"AdamW\", \"params\": {\"lr\": 0.01}}, \"out\": \"%s\"}",
                 scratch_path(state, i % 2 ? "out" : "none/out"));
        begin(&s);
        for (int c = 0; c < CALLS; c++) {
            call_one(&s);
        }
        destroy_from(&s, 0);
        good += s.good;
    }
    if (good < sequences / 2) {
        fail_msg("%ld calls on engines have succeeded in %ld sequences", good,
                 sequences);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drawn_sequences, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
