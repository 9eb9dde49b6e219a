// In place of base/pace.c: a task begins when somebody waits for it, and not before;
// or, by the seed, some do and some begin at once.
#include "base/pace.h"

#include "base/rng.h"
#include "guard/guard.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t read = PTHREAD_ONCE_INIT;
static _Atomic uint64_t seed;

static void read_seed(void) {
    const char *text = getenv("TR_GUARD_SEED");
    seed = text ? strtoull(text, NULL, 10) : 0;
}

uint64_t test_guard_seed(void) {
    pthread_once(&read, read_seed);
    return seed;
}

void test_guard_set_seed(uint64_t to) {
    pthread_once(&read, read_seed);
    seed = to;
}

bool tr__pace_begins(int64_t ticket, int64_t awaited) {
    bool late = test_guard_seed() == 0 ||
                tr__draw_below(2, (uint64_t)ticket, 7, test_guard_seed()) == 0;
    return ticket <= awaited || !late;
}
