#include "comm/mpi_control.h"

#include "comm/mpi_check.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stddef.h>
#include <string.h>

enum { TAG = 2 };

static const double beat_seconds = 1, look_seconds = 0.25;

static void change(tr_control *c) {
    c->version++;
    c->behind = true;
}

// ---- receiving

static tr_status listen(tr_control *c, tr_error *err) {
    return tr__mpi_check(MPI_Irecv(&c->inbox, sizeof c->inbox, MPI_BYTE, MPI_ANY_SOURCE,
                                   TAG, c->comm, &c->receiving),
                         "MPI_Irecv", err);
}

static tr_peer *peer_of(tr_control *c, int rank) {
    return &c->peers[c->base->rank == 0 ? rank - 1 : 0];
}

static bool all_bye(const tr_control *c) {
    for (int i = 0; i < c->count; i++) {
        if (!c->peers[i].bye) {
            return false;
        }
    }
    return true;
}

static void learn(tr_control *c, int from, int bytes, double now) {
    tr_peer *peer = peer_of(c, from);
    peer->heard = now;
    peer->bye = peer->bye || c->inbox.bye;
    tr__comm_note(c->base, c->inbox.noticed);
    if (bytes == (int)sizeof c->inbox && c->inbox.error.status != TR_OK) {
        tr__control_fail(c, &c->inbox.error, c->inbox.speaker);
    }
}

// Nothing comes after the last goodbye.
static tr_status receive(tr_control *c, double now, tr_error *err) {
    tr_status status = TR_OK;
    int flag = 1;
    while (status == TR_OK && flag && !all_bye(c)) {
        MPI_Status from;
        int bytes = 0;
        status = tr__mpi_check(MPI_Test(&c->receiving, &flag, &from), "MPI_Test", err);
        if (status == TR_OK && flag) {
            MPI_Get_count(&from, MPI_BYTE, &bytes);
            learn(c, from.MPI_SOURCE, bytes, now);
            status = all_bye(c) ? TR_OK : listen(c, err);
        }
    }
    return status;
}

// ---- telling

static tr_status tell(tr_control *c, tr_peer *peer, tr_error *err) {
    peer->outbox = c->news;
    peer->told = c->version;
    size_t bytes =
        c->news.error.status == TR_OK ? offsetof(tr_news, error) : sizeof peer->outbox;
    return tr__mpi_check(MPI_Isend(&peer->outbox, (int)bytes, MPI_BYTE, peer->rank, TAG,
                                   c->comm, &peer->sending),
                         "MPI_Isend", err);
}

// A peer that has not yet taken the last word gets the next one later.
static tr_status tell_all(tr_control *c, bool beat, tr_error *err) {
    tr_status status = TR_OK;
    c->behind = false;
    for (int i = 0; i < c->count && status == TR_OK; i++) {
        tr_peer *peer = &c->peers[i];
        int done = 1;
        if (peer->lost) {
            continue;
        }
        if (peer->sending != MPI_REQUEST_NULL) {
            status = tr__mpi_check(MPI_Test(&peer->sending, &done, MPI_STATUS_IGNORE),
                                   "MPI_Test", err);
        }
        if (status == TR_OK && done && (beat || peer->told < c->version)) {
            status = tell(c, peer, err);
        }
        c->behind =
            c->behind || peer->sending != MPI_REQUEST_NULL || peer->told < c->version;
    }
    return status;
}

// ---- silence

// Time in which this rank itself was not running is nobody's silence.
static void forgive(tr_control *c, double now) {
    double away = now - c->polled;
    for (int i = 0; i < c->count && away > beat_seconds; i++) {
        c->peers[i].heard += away;
    }
    c->polled = now;
}

static void find_silent(tr_control *c, double now) {
    for (int i = 0; i < c->count; i++) {
        tr_peer *peer = &c->peers[i];
        if (!peer->bye && !peer->lost && now - peer->heard > TR_SILENCE) {
            tr_error error = {0};
            peer->lost = true;
            tr_fail(&error, TR_COMM,
                    "rank %d has been silent for %d s: it has died, or its network has "
                    "failed",
                    peer->rank, TR_SILENCE);
            tr__control_fail(c, &error, peer->rank == 0 ? 1 : 0);
        }
    }
}

// ---- the whole

void tr__control_fail(tr_control *c, const tr_error *error, int speaker) {
    if (c->news.error.status == TR_OK) {
        c->news.error = *error;
        c->news.speaker = speaker;
        change(c);
    }
}

void tr__control_bye(tr_control *c) {
    c->news.bye = true;
    change(c);
}

void tr__control_poll(tr_control *c) {
    tr_error error = {0};
    double now = tr__seconds();
    forgive(c, now);
    tr_status status = receive(c, now, &error);
    int64_t noticed = atomic_load(&c->base->noticed);
    if (noticed > c->news.noticed) {
        c->news.noticed = noticed;
        change(c);
    }
    bool beat = now >= c->beat && !c->news.bye;
    if (status == TR_OK && now >= c->look) {
        find_silent(c, now);
        c->look = now + look_seconds;
    }
    if (status == TR_OK && (beat || c->behind)) {
        status = tell_all(c, beat, &error);
        c->beat = beat ? now + beat_seconds : c->beat;
    }
    if (status != TR_OK) {
        tr_error led = {0};
        tr_fail(&led, status, "rank %d: %s", c->base->rank, error.message);
        tr__control_fail(c, &led, 0);
    }
}

tr_status tr__control_begin(tr_control *c, tr_comm *base, MPI_Comm comm,
                            tr_error *err) {
    double now = tr__seconds();
    *c = (tr_control){.base = base,
                      .comm = comm,
                      .count = base->rank == 0 ? base->ranks - 1 : 1,
                      .receiving = MPI_REQUEST_NULL,
                      .polled = now,
                      .beat = now,
                      .look = now};
    c->peers = tr__calloc((size_t)c->count + 1, sizeof *c->peers);
    if (!c->peers) {
        return tr_fail(err, TR_MEMORY, "no memory for the ranks");
    }
    for (int i = 0; i < c->count; i++) {
        c->peers[i] = (tr_peer){.rank = base->rank == 0 ? i + 1 : 0,
                                .heard = now,
                                .sending = MPI_REQUEST_NULL};
    }
    return c->count > 0 ? listen(c, err) : TR_OK;
}

bool tr__control_is_told(const tr_control *c) {
    return !c->behind;
}

bool tr__control_is_over(const tr_control *c) {
    return all_bye(c) && !c->behind;
}

void tr__control_free(tr_control *c) {
    tr__free(c->peers);
    c->peers = NULL;
}
