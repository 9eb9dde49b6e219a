// Labels: threads
// Exchanges of ranks that are threads of this process, by functions of the program's:
// gathers and sums of random sizes by each algorithm, in the order of additions that
// the algorithm has; what is sent is as much as plans count. A function that fails ends
// them on every rank.
#include "comm/orders.h"
#include "comm/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

enum { CASES = 40, USUAL = 5000, LARGEST = 1200000 };

// ---- messages between threads

typedef struct box {
    const void *data; // NULL: empty
    size_t bytes;
} box;

typedef struct world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    box boxes[MEMBERS_MAX][MEMBERS_MAX]; // [from][to]
    bool broken;
    tr_comm_algorithm algorithm;
    int ranks;
    bool ferries;    // messages do not reach the operands
    bool any_thread; // exchanges are the library's thread's
    pthread_barrier_t meeting;
    int fails_in, fails_at; // this rank's exchange of that number, from 1; 0: none
} world;

typedef struct seat {
    world *w;
    int rank, exchanges;
    int wrong; // results that are not as they should be
    tr_error err;
} seat;

static bool is_full(const world *w, int from, int to) {
    return w->boxes[from][to].data != NULL;
}

// Once the other has taken what went before, and until it has taken this.
static tr_status exchange(void *user, int to, const void *out, size_t out_bytes,
                          int from, void *in, size_t in_bytes, tr_error *err) {
    seat *s = user;
    world *w = s->w;
    if (w->fails_in == s->rank && ++s->exchanges == w->fails_at) {
        return tr_fail(err, TR_COMM, "the line is cut");
    }
    pthread_mutex_lock(&w->lock);
    if (out_bytes > 0) {
        w->boxes[s->rank][to] = (box){out, out_bytes};
    }
    pthread_cond_broadcast(&w->changed);
    while (in_bytes > 0 && !is_full(w, from, s->rank) && !w->broken) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    if (in_bytes > 0 && !w->broken) {
        box *b = &w->boxes[from][s->rank];
        s->wrong += b->bytes != in_bytes;
        memcpy(in, b->data, b->bytes < in_bytes ? b->bytes : in_bytes);
        b->data = NULL;
        pthread_cond_broadcast(&w->changed);
    }
    while (out_bytes > 0 && is_full(w, s->rank, to) && !w->broken) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    bool broken = w->broken;
    pthread_mutex_unlock(&w->lock);
    return broken ? tr_fail(err, TR_COMM, "another rank has failed") : TR_OK;
}

static void abandon(void *user, const tr_error *error) {
    world *w = ((seat *)user)->w;
    (void)error;
    pthread_mutex_lock(&w->lock);
    w->broken = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

// ---- operations

// Of all ranks alike.
static int64_t draw(uint32_t *state, uint32_t below) {
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % below;
}

static float value(int rank, int64_t i) {
    return 1.0f / (float)((i * 7 + rank * 13) % 1000 + 1);
}

typedef struct operation {
    tr_comm_op op;
    int64_t first, part; // this rank's elements
    float whole[LARGEST], own[LARGEST];
} operation;

// A ferry that takes its time: copies are made when somebody has looked twice.
typedef struct boat {
    struct {
        const void *from;
        void *to;
        size_t bytes;
    } load[64];
    int loaded, moved, marked, looks;
    int64_t done; // tickets
} boat;

static void put_copy(void *user, const void *from, void *to, int64_t bytes) {
    boat *b = user;
    b->load[b->loaded % 64].from = from;
    b->load[b->loaded % 64].to = to;
    b->load[b->loaded++ % 64].bytes = (size_t)bytes;
}

static int64_t mark(void *user) {
    return ++((boat *)user)->marked;
}

static tr_status look(void *user, int64_t ticket, bool *done, tr_error *err) {
    boat *b = user;
    (void)err;
    for (; b->looks++ % 2 && b->moved < b->loaded; b->moved++) {
        memcpy(b->load[b->moved % 64].to, b->load[b->moved % 64].from,
               b->load[b->moved % 64].bytes);
    }
    b->done = b->moved == b->loaded ? b->marked : b->done;
    *done = ticket <= b->done;
    return TR_OK;
}

static void check_gather(seat *s, const operation *o) {
    for (int64_t i = 0; i < o->op.count; i++) {
        s->wrong += o->whole[i] != value((int)(i / o->op.shard), i);
    }
}

static void check_sum(seat *s, const operation *o) {
    float of[MEMBERS_MAX] = {0};
    for (int64_t i = 0; i < o->part; i++) {
        for (int r = 0; r < s->w->ranks; r++) {
            of[r] = value(r, o->first + i);
        }
        float sum = sum_of(s->w->algorithm, of, s->w->ranks, s->rank);
        // Where it is added, direct sums begin with what is there.
        s->wrong += !o->op.add && o->own[i] != sum;
        s->wrong += o->op.add && !(o->own[i] > sum + 0.99f && o->own[i] < sum + 1.01f);
    }
}

static void operate(seat *s, tr_comm *comm, operation *o) {
    bool gathers = o->op.kind == TR_COMM_GATHER;
    tr__comm_part(o->op.count, o->op.shard, s->rank, &o->first, &o->part);
    for (int64_t i = 0; i < o->op.count; i++) {
        o->whole[i] = gathers ? -1 : value(s->rank, i);
    }
    for (int64_t i = 0; i < o->part; i++) {
        o->own[i] = gathers ? value(s->rank, o->first + i) : 1;
    }
    o->op.send = gathers ? o->own : o->whole;
    o->op.recv = gathers ? o->whole : o->own;
    int64_t skipped = tr__comm_skip(comm, TR_COMM_RANKS); // by all ranks
    int64_t ticket = tr__comm_start(comm, &o->op);
    tr_status status = tr__comm_wait(comm, TR_COMM_RANKS, ticket, &s->err);
    s->wrong += ticket != skipped + 1; // exchanges count there, too
    if (status == TR_OK) {
        (gathers ? check_gather : check_sum)(s, o);
    }
}

static void run_cases(seat *s, tr_comm *comm) {
    operation *o = calloc(1, sizeof *o);
    if (!o) {
        tr_fail(&s->err, TR_MEMORY, "no memory");
        return;
    }
    uint32_t state = 1;
    for (int i = 0; i < CASES && s->err.status == TR_OK; i++) {
        bool sums = i % 2, fits = !sums || s->w->algorithm != TR_COMM_TREE;
        bool slices = s->w->ferries && fits && (i == 8 || i == 9); // several
        int64_t count = i < 3 ? i : slices ? LARGEST - i : draw(&state, USUAL);
        int64_t even = (count + s->w->ranks - 1) / s->w->ranks;
        int64_t shard = even + 1 + (i % 3 == 0 ? 0 : draw(&state, 900));
        o->op = (tr_comm_op){.kind = sums ? TR_COMM_REDUCE : TR_COMM_GATHER,
                             .type = TR_COMM_F32,
                             .count = count,
                             .shard = shard,
                             .add = i % 4 == 3,
                             .away = s->w->ferries,
                             .algorithm = s->w->algorithm};
        operate(s, comm, o);
    }
    free(o);
}

static tr_comm_functions functions_of(seat *s) {
    tr_comm_functions functions = TR_COMM_FUNCTIONS_INIT;
    functions.rank = s->rank;
    functions.ranks = s->w->ranks;
    functions.exchange = exchange;
    functions.abandon = abandon;
    functions.user = s;
    functions.any_thread = s->w->any_thread;
    return functions;
}

static void *run_rank(void *user) {
    seat *s = user;
    tr_comm *comm = NULL;
    tr_comm_functions functions = functions_of(s);
    if (tr_comm_create_callback(&functions, &comm, &s->err) == TR_OK) {
        const tr_comm_room room = {.ranks = s->w->ranks, .ferries = s->w->ferries};
        boat *own = calloc(1, sizeof *own);
        tr__comm_ferry(comm, &(tr_comm_ferry){put_copy, mark, look, own});
        void *staging = aligned_alloc(64, (size_t)tr__comm_staging_bytes(&room));
        tr__comm_staging(comm, &room, staging);
        run_cases(s, comm);
        tr_comm_close(comm);
        free(staging);
        free(own);
    }
    return NULL;
}

static void run_world_of(world *w, seat *seats, void *(*run)(void *)) {
    pthread_t threads[MEMBERS_MAX];
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (int r = 0; r < w->ranks; r++) {
        seats[r] = (seat){.w = w, .rank = r};
        assert_int_equal(pthread_create(&threads[r], NULL, run, &seats[r]), 0);
    }
    for (int r = 0; r < w->ranks; r++) {
        pthread_join(threads[r], NULL);
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

static void run_world(world *w, seat *seats) {
    run_world_of(w, seats, run_rank);
}

static void each_algorithm_adds_in_its_order(void **state) {
    static const int ranks[] = {2, 3, 4, 5, 6, 7, 9};
    const world *how = *state;
    for (int a = 0; a < TR_COMM_ALGORITHMS; a++) {
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
            world w = {.algorithm = (tr_comm_algorithm)a,
                       .ranks = ranks[i],
                       .ferries = how->ferries,
                       .any_thread = how->any_thread,
                       .fails_in = -1};
            seat seats[MEMBERS_MAX];
            run_world(&w, seats);
            for (int r = 0; r < w.ranks; r++) {
                assert_string_equal(seats[r].err.message, "");
                assert_int_equal(seats[r].wrong, 0);
            }
        }
    }
}

static void a_failure_ends_every_rank(void **state) {
    const world *how = *state;
    for (int a = 0; a < TR_COMM_ALGORITHMS; a++) {
        world w = {.algorithm = (tr_comm_algorithm)a,
                   .ranks = 4,
                   .any_thread = how->any_thread,
                   .fails_in = 2,
                   .fails_at = 9};
        seat seats[MEMBERS_MAX];
        run_world(&w, seats);
        for (int r = 0; r < w.ranks; r++) {
            assert_int_equal(seats[r].err.status, TR_COMM);
        }
        assert_non_null(strstr(seats[2].err.message, "the line is cut"));
    }
}

// ---- exchanges on a thread of the library's

enum { SENT = 3000 };

static tr_comm *open_seat(seat *s) {
    tr_comm *comm = NULL;
    tr_comm_functions functions = functions_of(s);
    return tr_comm_create_callback(&functions, &comm, &s->err) == TR_OK ? comm : NULL;
}

// Two ranks gather twice, on two channels; rank 0 has started both before rank 1
// begins, and waits for the later one first.
static void *gather_twice(void *user) {
    static float own[2][SENT], whole[2][2][2 * SENT];
    seat *s = user;
    tr_comm *comm = open_seat(s);
    int64_t tickets[2];
    own[s->rank][0] = value(s->rank, 0);
    for (int i = 0; i < 2; i++) {
        const tr_comm_op op = {.kind = TR_COMM_GATHER,
                               .type = TR_COMM_F32,
                               .channel = i == 0 ? TR_COMM_TENSOR : TR_COMM_RANKS,
                               .send = own[s->rank],
                               .recv = whole[s->rank][i],
                               .count = 2 * SENT,
                               .shard = SENT};
        if (s->rank == 1 && i == 0) {
            pthread_barrier_wait(&s->w->meeting);
        }
        tickets[i] = tr__comm_start(comm, &op);
    }
    if (s->rank == 0) { // nobody has answered yet
        pthread_barrier_wait(&s->w->meeting);
    }
    for (int i = 1; i >= 0; i--) {
        tr__comm_wait(comm, i == 0 ? TR_COMM_TENSOR : TR_COMM_RANKS, tickets[i],
                      &s->err);
        s->wrong += whole[s->rank][i][SENT] != value(1, 0);
    }
    tr_comm_close(comm);
    return NULL;
}

static void exchanges_go_on_beside(void **state) {
    (void)state;
    world w = {.ranks = 2, .any_thread = true, .fails_in = -1};
    seat seats[MEMBERS_MAX];
    pthread_barrier_init(&w.meeting, NULL, 2);
    run_world_of(&w, seats, gather_twice);
    pthread_barrier_destroy(&w.meeting);
    for (int r = 0; r < 2; r++) {
        assert_string_equal(seats[r].err.message, "");
        assert_int_equal(seats[r].wrong, 0);
    }
}

// Rank 0 gives up while its thread waits for rank 1, which does not come.
static void *give_up(void *user) {
    static float own[SENT], whole[2 * SENT];
    seat *s = user;
    tr_comm *comm = open_seat(s);
    tr_error mine = {0}, told = {0};
    if (s->rank == 0) {
        const tr_comm_op op = {.kind = TR_COMM_GATHER,
                               .type = TR_COMM_F32,
                               .send = own,
                               .recv = whole,
                               .count = 2 * SENT,
                               .shard = SENT};
        int64_t ticket = tr__comm_start(comm, &op);
        tr_fail(&mine, TR_DATA, "the text ends");
        tr_comm_abandon(comm, &mine);
        s->wrong += tr__comm_wait(comm, TR_COMM_RANKS, ticket, &told) != TR_DATA;
        s->wrong += !strstr(told.message, "rank 0: the text ends");
    }
    tr_comm_close(comm);
    return NULL;
}

static void who_gives_up_ends_its_exchange(void **state) {
    (void)state;
    world w = {.ranks = 2, .any_thread = true, .fails_in = -1};
    seat seats[MEMBERS_MAX];
    run_world_of(&w, seats, give_up);
    assert_int_equal(seats[0].wrong, 0);
}

int main(void) {
    static world plain, away = {.ferries = true}, beside = {.any_thread = true},
                        both = {.ferries = true, .any_thread = true};
    const struct CMUnitTest tests[] = {
        {"each algorithm adds in its order", each_algorithm_adds_in_its_order, NULL,
         NULL, &plain},
        {"by way of the staging", each_algorithm_adds_in_its_order, NULL, NULL, &away},
        {"on a thread", each_algorithm_adds_in_its_order, NULL, NULL, &beside},
        {"on a thread, by way of the staging", each_algorithm_adds_in_its_order, NULL,
         NULL, &both},
        {"a failure ends every rank", a_failure_ends_every_rank, NULL, NULL, &plain},
        {"a failure on a thread", a_failure_ends_every_rank, NULL, NULL, &beside},
        cmocka_unit_test(exchanges_go_on_beside),
        cmocka_unit_test(who_gives_up_ends_its_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
