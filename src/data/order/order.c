#include "data/order/order.h"

#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 8 };

// The least a with a * a >= n, for n up to TR_SAMPLES_MAX. The loops put right what
// rounding to a double did.
static int64_t root_up(int64_t n) {
    int64_t a = (int64_t)sqrt((double)n);
    while (a * a < n) {
        a++;
    }
    while ((a - 1) * (a - 1) >= n) {
        a--;
    }
    return a;
}

// A permutation of [0, a * b) as pairs (left, right): an unbalanced Feistel network in
// mixed radix, where each round adds a keyed function of one half to the other (Black
// and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
static int64_t permute(int64_t value, int64_t a, int64_t b, uint64_t seed,
                       uint64_t stream) {
    int64_t left = value % a, right = value / a;
    for (uint64_t round = 0; round < ROUNDS; round += 2) {
        uint64_t add =
            tr__draw_below((uint64_t)a, (uint64_t)right, seed, stream + round);
        left = (left + (int64_t)add) % a;
        add = tr__draw_below((uint64_t)b, (uint64_t)left, seed, stream + round + 1);
        right = (right + (int64_t)add) % b;
    }
    return right * a + left;
}

int64_t tr__order_sample(const tr_order *order, int64_t epoch, int64_t position) {
    if (!order->shuffled) {
        return position;
    }
    // a * b is less than samples + a, so the walk below rarely takes a second turn; it
    // ends because the cycle of `position` comes back to it at the latest.
    int64_t a = root_up(order->samples);
    int64_t b = (order->samples + a - 1) / a;
    uint64_t stream = tr__hash_more(tr__hash_text("data.order"), &epoch, sizeof epoch);
    do {
        position = permute(position, a, b, order->seed, stream);
    } while (position >= order->samples);
    return position;
}

tr_status tr__order_parse(const char *name, bool *shuffled, tr_error *err) {
    static const char *const names[] = {"shuffled", "sequential"};
    *shuffled = !name || strcmp(name, names[0]) == 0;
    if (*shuffled || strcmp(name, names[1]) == 0) {
        return TR_OK;
    }
    const char *near = tr__nearest(name, names, 2);
    return tr_fail(err, TR_USAGE, "data.order: '%s' is not known; %s%s%s", name,
                   near ? "did you mean '" : "it is 'shuffled' or 'sequential",
                   near ? near : "", near ? "'?" : "'");
}
