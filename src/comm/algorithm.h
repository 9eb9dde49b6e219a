// By which way the members of a group exchange.
#ifndef TR_COMM_ALGORITHM_H
#define TR_COMM_ALGORITHM_H

// Those that make an exchange of one stage. Exchanges of several (stages.h) have none
// of their own.
typedef enum tr_comm_algorithm {
    TR_COMM_DIRECT, // every member with every other
    TR_COMM_RING,   // each sends to the next one what it got from the one before it
    TR_COMM_TREE,   // rounds in which a member sends to another one what it has so far
    TR_COMM_ALGORITHMS
} tr_comm_algorithm;

#endif
