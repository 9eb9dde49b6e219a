// Fibers: each thread of a block has a stack, and gives way where it waits. A fiber
// begins by ucontext; from then on setjmp switches, which makes no system call.
#include <cstdio>
#include <cstdlib>
#include <setjmp.h>
#include <stdint.h>
#include <ucontext.h>

#include "cuda/shim.h"

namespace shim {
dim3 thread, block, threads, blocks;
}

namespace {
enum { THREADS_MAX = 1024, STACK = 1 << 16, LANES = 32 };

struct fiber {
    ucontext_t begin;
    jmp_buf at;
    char *stack;
    dim3 id;
    bool begun, done;
};

struct meeting {
    unsigned arrived, round;
};

fiber fibers[THREADS_MAX];
fiber *now;       // NULL: threads run one after the other
ucontext_t ended; // where no fiber goes
jmp_buf home;
unsigned count, finished;
meeting of_block, of_warp[THREADS_MAX / LANES];
uint64_t given[2][THREADS_MAX]; // by turns
void (*body)(void *);
void *closure;

void fail(const char *why) {
    fprintf(stderr, "cuda shim: %s\n", why);
    abort();
}

void give_way() {
    if (_setjmp(now->at) == 0) {
        _longjmp(home, 1);
    }
}

void meet(meeting *m, unsigned all) {
    if (!now) {
        fail("a thread waits for others in a kernel whose threads do not meet");
    }
    unsigned round = m->round;
    if (++m->arrived == all) {
        m->arrived = 0;
        m->round++;
    }
    while (m->round == round) {
        if (finished > 0 && all == count) {
            fail("a thread waits at a barrier that others do not reach");
        }
        give_way();
    }
}

unsigned index() {
    return shim::thread.x +
           shim::threads.x * (shim::thread.y + shim::threads.y * shim::thread.z);
}

dim3 id_of(unsigned i) {
    dim3 t = shim::threads;
    return dim3(i % t.x, i / t.x % t.y, i / (t.x * t.y));
}

void entry() {
    body(closure);
    now->done = true;
    finished++;
    _longjmp(home, 1);
}

void begin_fibers() {
    for (unsigned i = 0; i < count; i++) {
        fiber *f = &fibers[i];
        f->stack = f->stack ? f->stack : (char *)malloc(STACK);
        f->id = id_of(i);
        f->begun = f->done = false;
        getcontext(&f->begin);
        f->begin.uc_stack.ss_sp = f->stack;
        f->begin.uc_stack.ss_size = STACK;
        f->begin.uc_link = NULL;
        makecontext(&f->begin, entry, 0);
    }
}

// Until it waits or ends.
void go_on(fiber *f) {
    now = f;
    shim::thread = f->id;
    if (_setjmp(home) == 0) {
        if (f->begun) {
            _longjmp(f->at, 1);
        }
        f->begun = true;
        swapcontext(&ended, &f->begin);
    }
}

void run_fibers() {
    bool down = getenv("TR_CUDA_DESCENDING") != NULL;
    finished = 0;
    of_block = meeting();
    for (meeting &m : of_warp) {
        m = meeting();
    }
    begin_fibers();
    while (finished < count) {
        for (unsigned n = 0; n < count; n++) {
            fiber *f = &fibers[down ? count - 1 - n : n];
            if (!f->done) {
                go_on(f);
            }
        }
    }
    now = NULL;
}

void run_threads() {
    for (unsigned i = 0; i < count; i++) {
        shim::thread = id_of(i);
        body(closure);
    }
}
} // namespace

namespace shim {
void run(dim3 grid, dim3 each, bool meets, void (*what)(void *), void *with) {
    blocks = grid;
    threads = each;
    count = each.x * each.y * each.z;
    body = what;
    closure = with;
    if (count > THREADS_MAX) {
        fail("a block has too many threads");
    }
    for (block.z = 0; block.z < grid.z; block.z++) {
        for (block.y = 0; block.y < grid.y; block.y++) {
            for (block.x = 0; block.x < grid.x; block.x++) {
                meets ? run_fibers() : run_threads();
            }
        }
    }
}

void meet_block() {
    meet(&of_block, count);
}

int lane() {
    return (int)(index() % LANES);
}

// What a lane gives in one turn is read before it can give in the turn after the next.
uint64_t exchange(uint64_t mine, int from) {
    unsigned first = index() / LANES * LANES;
    unsigned all = count - first < LANES ? count - first : LANES;
    meeting *warp = &of_warp[first / LANES];
    uint64_t *turn = given[warp->round % 2];
    turn[index()] = mine;
    meet(warp, all);
    return turn[first + (unsigned)from % LANES];
}
} // namespace shim
