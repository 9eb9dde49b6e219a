// In which order an algorithm adds up what members have, and what it sends: by the rule
// of each, and not by the code that is tested.
#ifndef TEST_COMM_ORDERS_H
#define TEST_COMM_ORDERS_H

#include "comm/comm.h"

enum { MEMBERS_MAX = 16 };

// The largest power of two below the number of members.
static inline int first_distance(int members) {
    int apart = 1;
    while (2 * apart < members) {
        apart *= 2;
    }
    return apart;
}

// The sum that member `owner` gets of what each member has of one element.
static inline float sum_of_direct(const float *of, int members, int owner) {
    float sum = of[owner];
    for (int i = 1; i < members; i++) {
        sum += of[(owner + members - i) % members];
    }
    return sum;
}

static inline float sum_of_ring(const float *of, int members, int owner) {
    float sum = of[(owner + 1) % members];
    for (int i = 2; i <= members; i++) {
        sum += of[(owner + i) % members];
    }
    return sum;
}

// Members are numbered from the owner on. In each round the farther half of those that
// are left send their sums to members that are half as far.
static inline float sum_of_tree(const float *of, int members, int owner) {
    float sums[MEMBERS_MAX];
    for (int i = 0; i < members; i++) {
        sums[i] = of[(owner + i) % members];
    }
    for (int apart = first_distance(members); apart > 0; apart /= 2) {
        for (int i = apart; i < 2 * apart && i < members; i++) {
            sums[i - apart] += sums[i];
        }
    }
    return sums[0];
}

static inline float sum_of(tr_comm_algorithm algorithm, const float *of, int members,
                           int owner) {
    if (members == 1) {
        return of[0];
    }
    return algorithm == TR_COMM_RING   ? sum_of_ring(of, members, owner)
           : algorithm == TR_COMM_TREE ? sum_of_tree(of, members, owner)
                                       : sum_of_direct(of, members, owner);
}

// Elements of the parts that a member sends in a gather.
static inline int64_t gathered_by(tr_comm_algorithm algorithm, int members, int member,
                                  int64_t (*part)(int member)) {
    int64_t sum = 0;
    for (int i = 0; i < members - 1 && algorithm == TR_COMM_DIRECT; i++) {
        sum += part(member);
    }
    for (int i = 0; i < members - 1 && algorithm == TR_COMM_RING; i++) {
        sum += part((member + members - i) % members);
    }
    for (int d = 1; d < members && algorithm == TR_COMM_TREE; d *= 2) {
        for (int i = 0; i < d && i < members - d; i++) {
            sum += part((member + members - i) % members);
        }
    }
    return sum;
}

#endif
