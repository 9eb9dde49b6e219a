#include "seats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE = 60000 }; // milliseconds

// Sends and receives what can be moved at once. < 0: the other rank is gone.
static int move(int out, const char **from, size_t *left, int in, char **to,
                size_t *wanted) {
    if (*left > 0) {
        ssize_t sent = send(out, *from, *left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return -1;
        }
        *from += sent > 0 ? sent : 0;
        *left -= sent > 0 ? (size_t)sent : 0;
    }
    if (*wanted > 0) {
        ssize_t got = recv(in, *to, *wanted, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            return -1;
        }
        *to += got > 0 ? got : 0;
        *wanted -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static tr_status exchange(void *user, int to, const void *out, size_t out_bytes,
                          int from, void *in, size_t in_bytes, tr_error *err) {
    seat *s = user;
    const char *next = out;
    char *place = in;
    if (++s->exchanges == s->fails_at) {
        return tr_fail(err, TR_COMM, "the cable is cut");
    }
    if (to == s->rank || from == s->rank || out_bytes + in_bytes == 0) {
        return tr_fail(err, TR_INTERNAL, "an exchange that makes no sense");
    }
    while (out_bytes > 0 || in_bytes > 0) {
        struct pollfd of[2] = {{s->to[to], out_bytes > 0 ? POLLOUT : 0, 0},
                               {s->to[from], in_bytes > 0 ? POLLIN : 0, 0}};
        if (poll(of, 2, PATIENCE) <= 0 ||
            move(s->to[to], &next, &out_bytes, s->to[from], &place, &in_bytes) < 0) {
            return tr_fail(err, TR_COMM, "rank %d or %d is gone", to, from);
        }
    }
    return TR_OK;
}

static void leave(void *user, const tr_error *error) {
    seat *s = user;
    s->abandoned++;
    if (!error->message[0]) {
        s->abandoned += 100;
    }
    for (int r = 0; r < s->ranks; r++) {
        if (r != s->rank) {
            shutdown(s->to[r], SHUT_RDWR);
        }
    }
}

static void shut(void *user) {
    ((seat *)user)->shut++;
}

void seats_make(seat *seats, int ranks) {
    for (int a = 0; a < ranks; a++) {
        seats[a] = (seat){.rank = a, .ranks = ranks};
    }
    for (int a = 0; a < ranks; a++) {
        for (int b = 0; b < a; b++) {
            int pair[2];
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
            seats[a].to[b] = pair[0];
            seats[b].to[a] = pair[1];
        }
    }
}

void seats_free(const seat *seats, int ranks) {
    for (int a = 0; a < ranks; a++) {
        for (int b = 0; b < ranks; b++) {
            if (a != b) {
                close(seats[a].to[b]);
            }
        }
    }
}

tr_comm_functions seat_functions(seat *s) {
    tr_comm_functions functions = TR_COMM_FUNCTIONS_INIT;
    functions.rank = s->rank;
    functions.ranks = s->ranks;
    functions.exchange = exchange;
    functions.abandon = leave;
    functions.close = shut;
    functions.user = s;
    return functions;
}
