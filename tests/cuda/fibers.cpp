// Fibers: each thread of a block has a stack, and gives way where it waits. A fiber
// begins by ucontext; from then on setjmp switches, which makes no system call.
#include <cstdio>
#include <cstdlib>
#include <setjmp.h>
#include <stdint.h>
#include <ucontext.h>

#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "cuda/shim.h"

namespace shim {
dim3 thread, block, threads, blocks;
}

namespace {
enum { THREADS_MAX = 1024, STACK = 1 << 16, LANES = 32 };
enum { SHARED_MOST = 99 << 10 }; // of compute capability 8.6, the least of 8.0 to 9.0

// Into shared memory; of the group that its thread makes as number `group`.
struct copy {
    void *to;
    const void *from;
    size_t bytes;
    bool there;
    int group;
};

struct fiber {
    ucontext_t begin;
    jmp_buf at;
    char *stack;
    dim3 id;
    bool begun, done;
    std::vector<copy> copies; // that are under way
    int groups;               // made
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
shim::gift given[2][THREADS_MAX]; // by turns
char *shared_end;                 // nothing can be touched behind it
size_t shared_bytes;
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
        f->copies.clear();
        f->groups = 0;
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

// What was in it before another block is no number.
void open_shared() {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t most = (SHARED_MOST + page - 1) / page * page;
    if (!shared_end) {
        char *memory = (char *)mmap(NULL, most + page, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory + most, page, PROT_NONE) != 0) {
            fail("no memory");
        }
        shared_end = memory + most;
    }
    memset(shared_end - shared_bytes, 0xFF, shared_bytes);
}

void run_fibers() {
    bool down = getenv("TR_CUDA_DESCENDING") != NULL;
    open_shared();
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
void run(const shape &grid, bool meets, void (*what)(void *), void *with) {
    blocks = grid.blocks;
    threads = grid.threads;
    count = threads.x * threads.y * threads.z;
    shared_bytes = (grid.shared + 15) / 16 * 16;
    body = what;
    closure = with;
    if (count > THREADS_MAX || grid.shared > SHARED_MOST) {
        fail("a block has too many threads, or too much shared memory");
    }
    for (block.z = 0; block.z < blocks.z; block.z++) {
        for (block.y = 0; block.y < blocks.y; block.y++) {
            for (block.x = 0; block.x < blocks.x; block.x++) {
                meets ? run_fibers() : run_threads();
            }
        }
    }
}

void meet_block() {
    meet(&of_block, count);
}

bool any_of_block(bool mine) {
    static bool found;
    meet_block(); // all have read what the call before found
    found = false;
    meet_block();
    found = found || mine;
    meet_block();
    return found;
}

int lane() {
    return (int)(index() % LANES);
}

// What a lane gives in one turn is read before it can give in the turn after the next.
const gift *gather(const void *mine, size_t bytes) {
    unsigned first = index() / LANES * LANES;
    unsigned all = count - first < LANES ? count - first : LANES;
    meeting *warp = &of_warp[first / LANES];
    gift *turn = given[warp->round % 2];
    if (bytes > sizeof *turn) {
        fail("a lane gives too much");
    }
    memcpy(&turn[index()], mine, bytes);
    meet(warp, all);
    return &turn[first];
}

void *shared() {
    return shared_end - shared_bytes;
}

void must_align(const void *address, size_t bytes) {
    if ((uintptr_t)address % bytes != 0) {
        fail("an access is not aligned");
    }
}

void begin_copy(void *to, const void *from, size_t bytes, bool there) {
    must_align(to, bytes);
    must_align(from, bytes);
    now->copies.push_back(copy{to, from, bytes, there, now->groups});
}

void group_copies() {
    now->groups++;
}

void wait_copies(int left) {
    std::vector<copy> rest;
    for (const copy &c : now->copies) {
        if (c.group >= now->groups - left) {
            rest.push_back(c);
        } else if (c.there) {
            memcpy(c.to, c.from, c.bytes);
        } else {
            memset(c.to, 0, c.bytes);
        }
    }
    now->copies.swap(rest);
}
} // namespace shim
