// What ranks tell each other besides data: that they are there (every second), that
// somebody asked for an end, that one has failed, and at last goodbye. All ranks talk
// with rank 0 alone, and rank 0 with all: what one knows, all know soon after.
#ifndef TR_COMM_MPI_CONTROL_H
#define TR_COMM_MPI_CONTROL_H

#include "comm/transport.h"

#include <mpi.h>

enum { TR_SILENCE = 8 }; // seconds that end a rank

// All that a rank knows. The message goes along only when there is an error.
typedef struct tr_news {
    int64_t noticed; // as in tr_comm
    int32_t bye;     // nothing comes after this
    int32_t speaker; // of the error: the rank that best tells the user
    tr_error error;
} tr_news;

typedef struct tr_peer {
    int rank;
    double heard; // when
    bool bye;     // it has said so
    bool lost;    // silent: nothing is said to it any more
    int64_t told; // version of the news that it was sent
    MPI_Request sending;
    tr_news outbox;
} tr_peer;

typedef struct tr_control {
    tr_comm *base;
    MPI_Comm comm;
    tr_peer *peers; // [count]: rank 0: all others; the others: rank 0
    int count;
    tr_news news;
    int64_t version; // of the news
    bool behind;     // somebody may not have them yet
    MPI_Request receiving;
    tr_news inbox;
    double polled, beat, look; // when: last; next
} tr_control;

tr_status tr__control_begin(tr_control *control, tr_comm *base, MPI_Comm comm,
                            tr_error *err);
// Receives, tells what is to be told, finds the silent. An error that has come up,
// anywhere, is in news.error from then on.
void tr__control_poll(tr_control *control);
// This rank's own error, or one that it has found.
void tr__control_fail(tr_control *control, const tr_error *error, int speaker);
void tr__control_bye(tr_control *control);

// The others have been sent all news.
bool tr__control_is_told(const tr_control *control);
// All have said goodbye, and this rank's has left.
bool tr__control_is_over(const tr_control *control);
void tr__control_free(tr_control *control);

#endif
