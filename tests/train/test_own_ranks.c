// Labels: threads
// Ranks whose messages go over functions of the program's: threads of this process,
// with a pair of sockets between any two. They get the bits of one rank; what one of
// them is asked or fails at, all of them hear; and nothing hangs.
#include "base/memory.h"
#include "seats.h"

#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STEPS = 3, VALUES_MAX = 512, TEXT_MAX = 1024 };

// ---- what a rank does

typedef struct world {
    int ranks;
    char text[TEXT_MAX];
    int stops_in; // this rank is asked for an end in its second step; -1: none is
    int fails_in; // this rank's exchanges fail, from `fails_at` on; -1: none's
    int fails_at;
} world;

typedef struct rank_thread {
    const world *w;
    seat seat;
    tr_status stopped; // of the step in which an end was asked for
    tr_error err;
    tr_status again; // of a call after an error
    float values[VALUES_MAX];
    int64_t count;
    double loss[STEPS];
} rank_thread;

static bool always(void *user) {
    (void)user;
    return true;
}

static tr_status step_once(rank_thread *t, tr_engine *engine, int step) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error *err = &t->err;
    if (t->w->stops_in >= 0 && step == 1) {
        tr_error mine = {0};
        if (t->w->stops_in == t->seat.rank) {
            tr_engine_stop_when(engine, always, NULL, NULL);
        }
        t->stopped = tr_engine_step(engine, &result, &mine);
        tr_engine_stop_when(engine, NULL, NULL, NULL);
    }
    tr_status status = tr_engine_step(engine, &result, err);
    t->loss[step] = result.loss;
    return status;
}

static tr_status read_all(rank_thread *t, tr_engine *engine) {
    tr_status status = TR_OK;
    t->count = 0;
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

static tr_status train(rank_thread *t, tr_engine *engine) {
    tr_status status = TR_OK;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    for (int s = 0; s < STEPS && status == TR_OK; s++) {
        status = step_once(t, engine, s);
    }
    if (status == TR_OK) {
        status = tr_engine_evaluate(engine, 0, &evaluation, &t->err);
    }
    if (status == TR_OK) {
        status = read_all(t, engine);
    }
    if (status != TR_OK) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        t->again = tr_engine_step(engine, &result, NULL);
    }
    return status;
}

static tr_status open_and_train(rank_thread *t, tr_comm *comm) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_error *err = &t->err;
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.comm = comm;
    tr_status status = tr_run_create(&run, err);
    status = status == TR_OK ? tr_run_load_text(run, t->w->text, err) : status;
    status = status == TR_OK ? tr_run_set(run, "resume", "never", err) : status;
    status = status == TR_OK ? tr_run_give(run, &parts, err) : status;
    status = status == TR_OK ? tr_run_resolve(run, err) : status;
    status = status == TR_OK ? tr_run_make_plan(run, &plan, err) : status;
    status = status == TR_OK ? tr_engine_create(run, plan, &engine, err) : status;
    status = status == TR_OK ? train(t, engine) : status;
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return status;
}

static void *run_rank(void *user) {
    rank_thread *t = user;
    tr_comm *comm = NULL;
    if (t->w->ranks == 1) {
        open_and_train(t, NULL);
        return NULL;
    }
    const tr_comm_functions functions = seat_functions(&t->seat);
    if (tr_comm_create_callback(&functions, &comm, &t->err) == TR_OK) {
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
        threads[r] = (rank_thread){.w = w, .seat = seats[r]};
        threads[r].seat.fails_at = w->fails_in == r ? w->fails_at : 0;
        assert_int_equal(pthread_create(&id[r], NULL, run_rank, &threads[r]), 0);
    }
    for (int r = 0; r < w->ranks; r++) {
        pthread_join(id[r], NULL);
    }
    seats_free(seats, w->ranks);
}

static void world_make(world *w, int ranks, int stage, const char *more) {
    *w = (world){.ranks = ranks, .stops_in = -1, .fails_in = -1};
    snprintf(w->text, sizeof w->text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 17, 3]}, "
             "\"data\": {\"format\": \"random\", \"samples\": 50, \"features\": 6, "
             "\"classes\": 3, \"validation\": 0.2}, \"steps\": 9, "
             "\"train_batch_size\": 12, \"train_micro_batch_size_per_gpu\": 2, "
             "\"execution\": {\"threads\": 1, \"reproducible\": true}, \"optimizer\": "
             "{\"type\": \"AdamW\", \"params\": {\"lr\": 0.01}}, "
             "\"zero_optimization\": {\"stage\": %d%s}, \"out\": \"unused\"}",
             stage, more);
}

static void good(const rank_thread *t) {
    if (t->err.status != TR_OK) {
        fail_msg("rank %d: %s", t->seat.rank, t->err.message);
    }
}

static rank_thread alone[RANKS_MAX], several[RANKS_MAX];

static void assert_same(int ranks) {
    for (int r = 0; r < ranks; r++) {
        good(&several[r]);
        assert_int_equal(several[r].count, alone[0].count);
        assert_memory_equal(several[r].values, alone[0].values,
                            (size_t)alone[0].count * sizeof(float));
        for (int s = 0; s < STEPS; s++) {
            assert_true(several[r].loss[s] == alone[0].loss[s]);
        }
        assert_true(several[r].seat.exchanges > 0);
        assert_int_equal(several[r].seat.abandoned, 0);
        assert_int_equal(several[r].seat.shut, 1);
    }
}

// ---- the tests

static void any_number_of_ranks_gets_the_bits_of_one(void **state) {
    static const char *const more[] = {
        "", ", \"offload_optimizer\": {\"device\": \"cpu\"}"};
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        for (int m = 0; m < (stage > 0 ? 2 : 1); m++) {
            world w;
            world_make(&w, 1, stage, more[m]);
            run_world(&w, alone);
            good(&alone[0]);
            assert_true(alone[0].count > 100);
            assert_int_equal(alone[0].seat.exchanges, 0);
            for (w.ranks = 2; w.ranks <= RANKS_MAX; w.ranks++) {
                run_world(&w, several);
                assert_same(w.ranks);
            }
        }
    }
}

static void an_end_that_one_rank_is_asked_for_is_all_ranks(void **state) {
    (void)state;
    world w;
    world_make(&w, 1, 2, "");
    run_world(&w, alone);
    for (int r = 0; r < RANKS_MAX; r++) {
        world_make(&w, RANKS_MAX, 2, "");
        w.stops_in = r;
        run_world(&w, several);
        for (int k = 0; k < RANKS_MAX; k++) {
            assert_int_equal(several[k].stopped, TR_INTERRUPTED);
        }
        assert_same(RANKS_MAX);
    }
}

// From the first message to those of the last step.
static void a_failed_exchange_ends_all_ranks(void **state) {
    static const int at[] = {1, 2, 9, 40, 80};
    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        world w;
        world_make(&w, RANKS_MAX, 3, "");
        w.fails_in = (int)i % RANKS_MAX;
        w.fails_at = at[i];
        run_world(&w, several);
        for (int r = 0; r < RANKS_MAX; r++) {
            assert_int_equal(several[r].err.status, TR_COMM);
            assert_int_equal(several[r].seat.abandoned, 1);
            assert_true(several[r].again == TR_OK || several[r].again == TR_COMM);
        }
        const rank_thread *failed = &several[w.fails_in];
        assert_non_null(strstr(failed->err.message, "the cable is cut"));
        assert_int_equal(failed->seat.exchanges, at[i]); // none after it
    }
}

static void functions_that_do_not_fit_are_refused(void **state) {
    (void)state;
    seat s = {.rank = 0, .ranks = 1};
    tr_comm *comm = NULL;
    static const struct {
        int rank, ranks;
        bool exchange, abandon;
        size_t more;
        const char *words;
    } bad[] = {{0, 0, true, true, 0, "rank 0 of 0"},
               {2, 2, true, true, 0, "rank 2 of 2"},
               {-1, 2, true, true, 0, "rank -1 of 2"},
               {0, 1, false, true, 0, "exchange and abandon"},
               {0, 1, true, false, 0, "exchange and abandon"},
               {0, 1, true, true, 8, "TR_COMM_FUNCTIONS_INIT"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tr_error err = {0};
        tr_comm_functions functions = seat_functions(&s);
        functions.size += bad[i].more;
        functions.rank = bad[i].rank;
        functions.ranks = bad[i].ranks;
        functions.exchange = bad[i].exchange ? functions.exchange : NULL;
        functions.abandon = bad[i].abandon ? functions.abandon : NULL;
        assert_int_equal(tr_comm_create_callback(&functions, &comm, &err), TR_USAGE);
        if (!strstr(err.message, bad[i].words)) {
            fail_msg("\"%s\" does not say \"%s\"", err.message, bad[i].words);
        }
        assert_null(comm);
    }
    assert_int_equal(tr_comm_create_callback(NULL, &comm, NULL), TR_USAGE);
    const tr_comm_functions functions = seat_functions(&s);
    assert_int_equal(tr_comm_create_callback(&functions, NULL, NULL), TR_USAGE);
}

static void memory_that_fails_is_told(void **state) {
    (void)state;
    tr_status status = TR_MEMORY;
    int nth = 1;
    for (; status != TR_OK; nth++) {
        seat s = {.rank = 0, .ranks = 1};
        tr_comm *comm = NULL;
        tr_error err = {0};
        const tr_comm_functions functions = seat_functions(&s);
        tr__memory_fail_at(nth);
        status = tr_comm_create_callback(&functions, &comm, &err);
        tr__memory_fail_at(0);
        // What all ranks have agreed on needs no further word.
        assert_int_equal(s.abandoned, nth < 3);
        if (status == TR_OK) {
            assert_int_equal(tr_comm_rank(comm), 0);
            assert_int_equal(tr_comm_ranks(comm), 1);
            assert_true(tr_comm_threads(comm) >= 1);
            assert_true(tr_comm_speaks(comm));
        } else {
            assert_int_equal(status, TR_MEMORY);
            assert_null(comm);
        }
        tr_comm_close(comm);
        assert_int_equal(s.shut, status == TR_OK);
    }
    assert_true(nth > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks_gets_the_bits_of_one),
        cmocka_unit_test(an_end_that_one_rank_is_asked_for_is_all_ranks),
        cmocka_unit_test(a_failed_exchange_ends_all_ranks),
        cmocka_unit_test(functions_that_do_not_fit_are_refused),
        cmocka_unit_test(memory_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
