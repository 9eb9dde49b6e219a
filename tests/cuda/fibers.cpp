// Fibers: each thread of a block has a stack, and gives way where it waits. A fiber
// begins by ucontext and lasts: it runs a thread of each block in turn. From then on
// the compiler's own jumps switch, which make no system call and save no more than they
// must.
#include <cstdio>
#include <cstdlib>
#include <stdint.h>
#include <ucontext.h>

#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "cuda/shim.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace shim {
dim3 thread, block, threads, blocks;
}

namespace {
#if defined(__SANITIZE_ADDRESS__)
enum { STACK = 1 << 18 }; // its frames are wider
#else
enum { STACK = 1 << 16 };
#endif
enum { THREADS_MAX = 1024, LANES = 32 };
enum { SHARED_MOST = 99 << 10 }; // of compute capability 8.6, the least of 8.0 to 9.0

// Into shared memory; of the group that its thread makes as number `group`.
struct copy {
    void *to;
    const void *from;
    size_t bytes;
    bool there;
    int group;
};

struct meeting {
    unsigned arrived, round;
};

typedef void *jump[5]; // as __builtin_setjmp asks

struct fiber {
    jump at;
    void *frames; // AddressSanitizer's
    char *stack;
    dim3 id;
    bool done;
    const meeting *awaited;   // NULL: it waits for no one
    unsigned round;           // that it waits to be over
    std::vector<copy> copies; // that are under way
    int groups;               // made
};

fiber fibers[THREADS_MAX];
fiber *now; // NULL: threads run one after the other
jump home;
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

// ---- switches, of which AddressSanitizer must know

// It would clean the stack that is left, as before a call that does not come back, when
// it takes the next one for the one in use.
#define SWITCHES __attribute__((noinline, no_sanitize_address))

#if defined(__SANITIZE_ADDRESS__)
void *home_frames;
const void *home_stack;
size_t home_bytes;

void leave_home(const fiber *to) {
    __sanitizer_start_switch_fiber(&home_frames, to->stack, STACK);
}

void come_home() {
    __sanitizer_finish_switch_fiber(home_frames, NULL, NULL);
}

void leave(fiber *from) {
    __sanitizer_start_switch_fiber(&from->frames, home_stack, home_bytes);
}

void come(const fiber *to) {
    __sanitizer_finish_switch_fiber(to->frames, &home_stack, &home_bytes);
}
#else
void leave_home(const fiber *) {
}

void come_home() {
}

void leave(fiber *) {
}

void come(const fiber *) {
}
#endif

// From a function of its own: in one that has a target itself the compiler takes that
// one for out of reach.
SWITCHES void go_to(jump target) {
    __builtin_longjmp(target, 1);
}

SWITCHES void give_way() {
    if (__builtin_setjmp(now->at) == 0) {
        leave(now);
        go_to(home);
    }
    come(now);
}

// Threads of every block, one after the other.
SWITCHES void entry() {
    come(now);
    for (;;) {
        body(closure);
        now->done = true;
        finished++;
        give_way();
    }
}

SWITCHES void begin(fiber *f) {
    ucontext_t context;
    f->stack = (char *)malloc(STACK);
    if (!f->stack || getcontext(&context) != 0) {
        fail("no memory");
    }
    context.uc_stack.ss_sp = f->stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = NULL;
    makecontext(&context, entry, 0);
    leave_home(f);
    setcontext(&context);
    fail("a fiber cannot begin");
}

// Until it waits or ends.
SWITCHES void go_on(fiber *f) {
    now = f;
    shim::thread = f->id;
    if (__builtin_setjmp(home) == 0) {
        if (!f->stack) {
            begin(f);
        }
        leave_home(f);
        go_to(f->at);
    }
    come_home();
}

// ---- meetings

void meet(meeting *m, unsigned all) {
    if (!now) {
        fail("a thread waits for others in a kernel whose threads do not meet");
    }
    if (++m->arrived == all) {
        m->arrived = 0;
        m->round++;
        return;
    }
    now->awaited = m;
    now->round = m->round;
    give_way();
    now->awaited = NULL;
}

bool waits(const fiber *f) {
    return f->awaited && f->awaited->round == f->round;
}

unsigned index() {
    return shim::thread.x +
           shim::threads.x * (shim::thread.y + shim::threads.y * shim::thread.z);
}

dim3 id_of(unsigned i) {
    dim3 t = shim::threads;
    return dim3(i % t.x, i / t.x % t.y, i / (t.x * t.y));
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
    for (unsigned i = 0; i < count; i++) {
        fibers[i].id = id_of(i);
        fibers[i].done = false;
        fibers[i].copies.clear();
        fibers[i].groups = 0;
    }
    while (finished < count) {
        bool went = false;
        for (unsigned n = 0; n < count; n++) {
            fiber *f = &fibers[down ? count - 1 - n : n];
            if (!f->done && !waits(f)) {
                go_on(f);
                went = true;
            }
        }
        if (!went) {
            fail("a thread waits at a barrier that others do not reach");
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
