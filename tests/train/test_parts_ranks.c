// Labels: threads guard
// Steps in parts on several ranks: each hands micro-batches of its own over, and all
// come to the weights of one rank. A rank that gives a step up lets nobody hang.
#include "opening.h"
#include "outside.h"
#include "seats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

enum { STEPS = 3, TEXT_MAX = 1024, VALUES_MAX = 1024, MICRO = 4 };

typedef enum giving_up {
    NOBODY,
    ALL_DROP,    // a step, after different numbers of micro-batches
    ONE_DROPS,   // while the others come to their update
    ONE_DESTROYS // its engine in the middle of a step
} giving_up;

typedef struct world {
    int ranks, stages;
    int64_t g; // of a rank
    giving_up up;
    int who;     // gives up, if it is one
    bool deep;   // a model of more units
    bool ragged; // some micro-batches have fewer rows, or none
    bool folded; // the first stage has the outputs, else the last
    char text[TEXT_MAX];
} world;

typedef struct rank_thread {
    const world *w;
    const outside_data *data;
    seat seat;
    tr_status told; // of the step that was given up
    tr_error err;
    float values[VALUES_MAX];
    int64_t count;
    double loss[STEPS];
    int outputs; // of the evaluation
    float logits[MICRO * OWN_CLASSES];
} rank_thread;

static outside_data data;

static tr_status micro(rank_thread *t, tr_engine *engine, int step, int64_t j,
                       tr_error *err) {
    int64_t data_ranks = t->w->ranks / t->w->stages;
    int64_t number = (step * data_ranks + t->seat.rank % data_ranks) * t->w->g + j;
    int64_t of_step = number % (data_ranks * t->w->g);
    int64_t rows = !t->w->ragged ? MICRO : of_step == 2 ? 0 : of_step == 5 ? 1 : MICRO;
    return outside_micro(engine, t->data, number * MICRO, rows, NULL, err);
}

static tr_status step_once(rank_thread *t, tr_engine *engine, int step, tr_error *err) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_status status = TR_OK;
    for (int64_t j = 0; j < t->w->g && status == TR_OK; j++) {
        status = micro(t, engine, step, j, err);
    }
    status = status == TR_OK ? tr_engine_update(engine, &result, err) : status;
    t->loss[step] = result.loss;
    return status;
}

static void give_up(rank_thread *t, tr_engine *engine) {
    tr_error err = {0};
    bool drops = t->w->up == ALL_DROP || t->seat.rank == t->w->who;
    for (int64_t j = 0; j < (drops ? 1 + t->seat.rank : 0); j++) {
        (void)micro(t, engine, 0, j, &err);
    }
    t->told = drops ? tr_engine_drop(engine, &err) : step_once(t, engine, 0, &err);
}

static tr_status read_all(rank_thread *t, tr_engine *engine) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < tr_engine_tensors(engine) && status == TR_OK; i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        status = tr_engine_tensor(engine, i, &info, &t->err);
        int64_t count = tr_shape_count(info.shape);
        if (status == TR_OK && t->count + count <= VALUES_MAX) {
            status = tr_engine_read(engine, info.name, "values", 0, count,
                                    t->values + t->count, &t->err);
            t->count += count;
        }
    }
    return status;
}

static tr_status evaluate(rank_thread *t, tr_engine *engine) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    const void *inputs[] = {t->data->x[0]};
    options.inputs = inputs;
    options.rows = MICRO;
    options.evaluate = true;
    tr_status status = tr_engine_forward(engine, &options, &outputs, &t->err);
    t->outputs = outputs.count;
    if (outputs.count > 0) {
        memcpy(t->logits, outputs.output[0].data, sizeof t->logits);
    }
    return status;
}

static tr_status train(rank_thread *t, tr_engine *engine) {
    tr_status status = TR_OK;
    if (t->w->up == ALL_DROP || t->w->up == ONE_DROPS) {
        give_up(t, engine);
    }
    if (t->w->up == ONE_DESTROYS && t->seat.rank == t->w->who) {
        return micro(t, engine, 0, 0, &t->err); // what follows destroys the engine
    }
    for (int s = 0; s < STEPS && status == TR_OK; s++) {
        status = step_once(t, engine, s, &t->err);
    }
    status = status == TR_OK ? evaluate(t, engine) : status;
    return status == TR_OK ? read_all(t, engine) : status;
}

static void open_and_train(rank_thread *t, tr_comm *comm) {
    own_model own;
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_error *err = &t->err;
    if (t->w->deep) {
        own_model_make_open_deep(&own);
    } else {
        own_model_make_open(&own, 0);
    }
    run_options options = {
        .text = t->w->text, .own_model = &own.model, .comm = comm, .resume = "never"};
    tr_status status = run_open(&options, &run, err);
    status = status == TR_OK ? tr_run_make_plan(run, &plan, err) : status;
    status = status == TR_OK ? tr_engine_create(run, plan, &engine, err) : status;
    if (status == TR_OK) {
        train(t, engine);
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

static void *run_rank(void *user) {
    rank_thread *t = user;
    tr_comm *comm = NULL;
    const tr_comm_functions functions = seat_functions(&t->seat);
    if (t->w->ranks == 1) {
        open_and_train(t, NULL);
    } else if (tr_comm_create_callback(&functions, &comm, &t->err) == TR_OK) {
        open_and_train(t, comm);
    }
    tr_comm_close(comm);
    return NULL;
}

static void run_world(const world *w, rank_thread threads[RANKS_MAX]) {
    pthread_t id[RANKS_MAX];
    seat seats[RANKS_MAX];
    seats_make(seats, w->ranks);
    for (int r = 0; r < w->ranks; r++) {
        threads[r] = (rank_thread){.w = w, .data = &data, .seat = seats[r]};
        assert_int_equal(pthread_create(&id[r], NULL, run_rank, &threads[r]), 0);
    }
    for (int r = 0; r < w->ranks; r++) {
        pthread_join(id[r], NULL);
    }
    seats_free(seats, w->ranks);
}

// `more`: members of the run file.
static void world_make_with(world *w, int64_t g, int stage, const char *homes,
                            const char *more) {
    snprintf(w->text, sizeof w->text,
             "{\"steps\": 9, \"train_micro_batch_size_per_gpu\": %d, "
             "\"gradient_accumulation_steps\": %d, \"execution\": {\"threads\": 1}, "
             "\"gradient_clipping\": 1.0, \"optimizer\": {\"type\": \"AdamW\", "
             "\"params\": {\"lr\": 0.01, \"eps\": 1e-6}}, "
             "\"zero_optimization\": {\"stage\": %d%s}, \"out\": \"unused\"%s}",
             MICRO, (int)g, stage, homes, more);
}

static void world_make(world *w, int ranks, int64_t g, int stage, const char *homes) {
    *w = (world){.ranks = ranks, .stages = 1, .g = g, .up = NOBODY, .who = 1};
    world_make_with(w, g, stage, homes, "");
}

static void world_make_stages(world *w, int data_ranks, int stages, int stage,
                              const char *schedule) {
    char more[128];
    *w = (world){.ranks = data_ranks * stages,
                 .stages = stages,
                 .g = 6 / data_ranks,
                 .up = NOBODY,
                 .who = 1};
    snprintf(more, sizeof more, ", \"pipeline\": {\"stages\": %d%s}", stages, schedule);
    world_make_with(w, w->g, stage, "", more);
}

static void good(const rank_thread *t) {
    if (t->err.status != TR_OK) {
        fail_msg("rank %d of stage with %s: %s", t->seat.rank, t->w->text,
                 t->err.message);
    }
}

static rank_thread alone[RANKS_MAX], several[RANKS_MAX];

static void assert_same(int ranks) {
    for (int r = 0; r < ranks; r++) {
        good(&several[r]);
        assert_int_equal(several[r].count, alone[0].count);
        for (int64_t i = 0; i < alone[0].count; i++) {
            assert_true(fabsf(several[r].values[i] - alone[0].values[i]) < 1e-5f);
        }
        const world *w = several[r].w;
        bool has = r / (ranks / w->stages) == (w->folded ? 0 : w->stages - 1);
        assert_int_equal(several[r].outputs, has);
        for (int i = 0; i < MICRO * OWN_CLASSES && has; i++) {
            assert_true(fabsf(several[r].logits[i] - alone[0].logits[i]) < 1e-4f);
        }
        for (int s = 0; s < STEPS; s++) {
            assert_true(fabs(several[r].loss[s] - alone[0].loss[s]) < 1e-6);
        }
        assert_int_equal(several[r].seat.abandoned, 0);
    }
}

static void run_alone_as(const world *like, int64_t g) {
    world one;
    world_make(&one, 1, g, 0, "");
    one.deep = like->deep;
    one.ragged = like->ragged;
    run_world(&one, alone);
    good(&alone[0]);
    assert_true(alone[0].count > 100);
}

static void run_alone(int64_t g) {
    const world like = {.deep = false};
    run_alone_as(&like, g);
}

// ---- the tests

static void ranks_come_to_the_weights_of_one(void **state) {
    static const char *const homes[] = {
        "", ", \"offload_optimizer\": {\"device\": \"cpu\"}",
        ", \"offload_optimizer\": {\"device\": \"cpu\"}, "
        "\"offload_param\": {\"device\": \"cpu\"}"};
    world some;
    (void)state;
    run_alone(4);
    for (int stage = 0; stage < 4; stage++) {
        for (int h = 0; h < (stage == 3 ? 3 : 2); h++) {
            world_make(&some, 2, 2, stage, homes[h]);
            run_world(&some, several);
            assert_same(2);
        }
    }
}

// The last stage's ranks have the outputs, and all make the same calls.
static void stages_come_to_the_weights_of_one(void **state) {
    static const struct {
        int data_ranks, stages, stage;
        const char *schedule;
    } cases[] = {{1, 2, 0, ""},
                 {1, 3, 0, ", \"schedule\": \"zero_bubble\""},
                 {1, 4, 0, ", \"schedule\": \"breadth_first\""},
                 {2, 2, 1, ""},
                 {2, 2, 3, ", \"schedule\": \"zero_bubble\""}};
    world some;
    (void)state;
    run_alone(6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world_make_stages(&some, cases[i].data_ranks, cases[i].stages, cases[i].stage,
                          cases[i].schedule);
        run_world(&some, several);
        assert_same(some.ranks);
    }
}

#define PARTS(schedule, each)                                                          \
    ", \"schedule\": \"" schedule "\", \"virtual_stages\": " #each

// Each stage has several parts of the model, and takes a micro-batch through all of
// them before the next. In a V the first stage has the outputs.
static void parts_of_stages_come_to_the_weights_of_one(void **state) {
    static const struct {
        int data_ranks, stages, stage;
        bool deep, folded;
        const char *schedule;
    } cases[] = {{1, 2, 0, false, false, PARTS("interleaved", 2)},
                 {1, 2, 0, true, false, PARTS("interleaved", 4)},
                 {1, 2, 0, false, false, PARTS("breadth_first", 2)},
                 {1, 2, 0, false, true, PARTS("v", 2)},
                 {2, 2, 1, false, false, PARTS("interleaved", 2)},
                 {2, 2, 3, false, true, PARTS("v", 2)},
                 {2, 2, 3, false, false, PARTS("breadth_first", 2)},
                 {1, 3, 0, true, false, PARTS("interleaved", 2)},
                 {1, 4, 0, true, false, PARTS("interleaved", 2)},
                 {1, 4, 0, true, false, PARTS("breadth_first", 2)},
                 {1, 4, 0, true, true, PARTS("v", 2)}};
    enum { CASES = sizeof cases / sizeof *cases };
    (void)state;
    for (int i = 0; i < 4 * CASES; i++) {
        size_t at = (size_t)i % CASES;
        bool deep = i >= 2 * CASES, ragged = i / CASES % 2 == 1;
        world some;
        if (i % CASES == 0) {
            run_alone_as(&(world){.deep = deep, .ragged = ragged}, 6);
        }
        if (cases[at].deep != deep) {
            continue;
        }
        world_make_stages(&some, cases[at].data_ranks, cases[at].stages,
                          cases[at].stage, cases[at].schedule);
        some.deep = deep;
        some.ragged = ragged;
        some.folded = cases[at].folded;
        run_world(&some, several);
        assert_same(some.ranks);
    }
}

static const struct {
    bool folded;
    const char *schedule;
} giving_up_cases[] = {{false, ""},
                       {false, PARTS("interleaved", 2)},
                       {false, PARTS("breadth_first", 2)},
                       {true, PARTS("v", 2)}};
enum { GIVING_UP = sizeof giving_up_cases / sizeof *giving_up_cases };

// All, or one stage: with the outputs, or without.
static void stages_drop_a_step(void **state) {
    world some;
    (void)state;
    run_alone(6);
    for (int i = 0; i < 2 * GIVING_UP; i++) {
        world_make_stages(&some, 1, 2, 0, giving_up_cases[i / 2].schedule);
        some.folded = giving_up_cases[i / 2].folded;
        some.who = i % 2;
        for (some.up = ALL_DROP; some.up <= ONE_DROPS; some.up++) {
            tr_status other = some.up == ALL_DROP ? TR_OK : TR_INTERRUPTED;
            run_world(&some, several);
            assert_same(2);
            assert_int_equal(several[some.who].told, TR_OK);
            assert_int_equal(several[1 - some.who].told, other);
        }
    }
}

static void a_stage_that_ends_in_a_step_ends_all(void **state) {
    world some;
    (void)state;
    for (int i = 0; i < 2 * GIVING_UP; i++) {
        world_make_stages(&some, 1, 2, 0, giving_up_cases[i / 2].schedule);
        some.who = i % 2;
        some.up = ONE_DESTROYS;
        run_world(&some, several);
        good(&several[some.who]);
        assert_int_equal(several[1 - some.who].err.status, TR_COMM);
        assert_int_equal(several[some.who].seat.abandoned, 1);
    }
}

static void a_step_that_all_ranks_drop_is_made_anew(void **state) {
    world some;
    (void)state;
    run_alone(6);
    for (int stage = 0; stage < 4; stage++) {
        world_make(&some, 2, 3, stage, "");
        for (some.up = ALL_DROP; some.up <= ONE_DROPS; some.up++) {
            run_world(&some, several);
            assert_same(2);
            assert_int_equal(several[1].told, TR_OK);
            assert_int_equal(several[0].told,
                             some.up == ALL_DROP ? TR_OK : TR_INTERRUPTED);
        }
    }
}

static void an_engine_that_ends_in_a_step_ends_all(void **state) {
    world some;
    (void)state;
    for (int stage = 0; stage < 4; stage += 3) {
        world_make(&some, 2, 2, stage, "");
        some.up = ONE_DESTROYS;
        run_world(&some, several);
        good(&several[1]);
        assert_int_equal(several[0].err.status, TR_COMM);
        assert_int_equal(several[1].seat.abandoned, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_come_to_the_weights_of_one),
        cmocka_unit_test(stages_come_to_the_weights_of_one),
        cmocka_unit_test(parts_of_stages_come_to_the_weights_of_one),
        cmocka_unit_test(stages_drop_a_step),
        cmocka_unit_test(a_stage_that_ends_in_a_step_ends_all),
        cmocka_unit_test(a_step_that_all_ranks_drop_is_made_anew),
        cmocka_unit_test(an_engine_that_ends_in_a_step_ends_all),
    };
    outside_fill(&data);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
