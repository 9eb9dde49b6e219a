// Ranks that are threads of this process: between any two of them is a pair of sockets.
#ifndef TESTS_TRAIN_SEATS_H
#define TESTS_TRAIN_SEATS_H

#include <tranche/comm.h>

enum { RANKS_MAX = 4 };

typedef struct seat {
    int rank, ranks;
    int to[RANKS_MAX];   // sockets; of a pair each rank has one end
    int exchanges;       // so far
    int fails_at;        // the exchange that fails; 0: none
    int abandoned, shut; // how often these were called
} seat;

// seats: [ranks], each for one thread.
void seats_make(seat *seats, int ranks);
void seats_free(const seat *seats, int ranks);
// What tr_comm_create_callback takes of a seat.
tr_comm_functions seat_functions(seat *s);

#endif
