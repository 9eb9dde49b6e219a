// A group is a file in memory that its members map: each has a slot there, through
// which parts go piece by piece, and all wait for each other at a barrier. As NCCL's
// communicators that do not block, it is busy for a while with what it has been asked,
// and puts it into the stream only then; and a stream waits for the other members for
// ever, unless the group is given up, also where an exchange fails meanwhile.
#include "cuda/peers.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "base/half.h"
}

namespace {
enum { FAILED = 5, SLOT = 1 << 16, MEMBERS_MOST = 16, LOOKS = 2 };

struct shared {
    std::atomic<int> joined, arrived, round;
    alignas(64) char slots[MEMBERS_MOST][SLOT];
};

struct group {
    shared *all;
    int members, member;
    std::atomic<bool> broken;
    int looks; // that still find it busy
    std::function<void()> pending;
    void *stream; // it is for
    std::atomic<int> error;
};

bool there = false;
std::atomic<int64_t> exchanges;

// false: the group is given up.
bool meet(group *g) {
    int round = g->all->round;
    if (++g->all->arrived == g->members) {
        g->all->arrived = 0;
        g->all->round++;
        return !g->broken;
    }
    while (g->all->round == round && !g->broken) {
        usleep(50);
    }
    return !g->broken;
}

template <class T> void add_up(const group *g, void *to, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(T); i++) {
        T sum = 0;
        for (int m = 0; m < g->members; m++) { // not in the order of messages
            sum += ((const T *)g->all->slots[m])[i];
        }
        ((T *)to)[i] = sum;
    }
}

void add_halves(const group *g, void *to, size_t bytes, bool bf16) {
    for (size_t i = 0; i < bytes / 2; i++) {
        float sum = 0;
        for (int m = 0; m < g->members; m++) {
            uint16_t term = ((const uint16_t *)g->all->slots[m])[i];
            sum += bf16 ? tr__bf16_to_f32(term) : tr__f16_to_f32(term);
        }
        ((uint16_t *)to)[i] = bf16 ? tr__bf16_of_f32(sum) : tr__f16_of_f32(sum);
    }
}

void add_slots(const group *g, tr_comm_type type, void *to, size_t bytes) {
    if (type == TR_COMM_I64) {
        add_up<int64_t>(g, to, bytes);
    } else if (type == TR_COMM_F32) {
        add_up<float>(g, to, bytes);
    } else {
        add_halves(g, to, bytes, type == TR_COMM_BF16);
    }
}

// One piece of a part; false: the group is given up.
bool do_piece(group *g, const tr_cuda_exchange &p, size_t at, size_t bytes) {
    bool reduces = p.kind == TR_CUDA_REDUCE, root = g->member == p.root;
    if (p.from && p.kind != TR_CUDA_RECEIVE) {
        memcpy(g->all->slots[g->member], (const char *)p.from + at, bytes);
    }
    if (!meet(g)) {
        return false;
    }
    char *to = (char *)p.to + at;
    if (reduces && root) {
        add_slots(g, p.type, to, bytes);
    } else if (!reduces && p.kind != TR_CUDA_SEND) {
        memcpy(to, g->all->slots[p.root], bytes);
    }
    return meet(g);
}

void do_part(group *g, const tr_cuda_exchange &p) {
    size_t bytes = p.count * tr__comm_type_bytes(p.type), some = 0;
    for (size_t at = 0; at < bytes; at += some) {
        some = bytes - at < SLOT ? bytes - at : SLOT;
        if (!do_piece(g, p, at, some)) {
            return;
        }
    }
}

int open_group(const char *name, bool makes, group *g) {
    int file = shm_open(name, O_RDWR | (makes ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0 || (makes && ftruncate(file, sizeof(shared)) != 0)) {
        return FAILED;
    }
    void *memory =
        mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    g->all = (shared *)memory;
    return memory == MAP_FAILED ? FAILED : 0;
}
} // namespace

void test_device_set_peers(bool now) {
    there = now;
}

int64_t test_device_exchanges(void) {
    return exchanges;
}

const char *test_peers_missing(void) {
    return there ? NULL : "the tests have taken NCCL away";
}

int test_peers_invite(void *invitation) {
    static int made;
    group g = {};
    snprintf((char *)invitation, 128, "/tranche-test-%d-%d", (int)getpid(), made++);
    int error = open_group((const char *)invitation, true, &g);
    if (error == 0) {
        munmap(g.all, sizeof(shared));
    }
    return error;
}

int test_peers_join(const void *invitation, int members, int member, void **peers) {
    group *g = new group();
    g->members = members;
    g->member = member;
    g->looks = LOOKS;
    int error = open_group((const char *)invitation, false, g);
    if (error == 0 && ++g->all->joined == members) {
        shm_unlink((const char *)invitation);
    }
    *peers = g;
    return error;
}

int test_peers_state(void *peers, bool *busy) {
    group *g = (group *)peers;
    *busy = g->all->joined < g->members || (g->looks > 0 && g->looks-- > 0);
    if (!*busy && g->pending) {
        test_put_exchange(g->stream, g->pending);
        g->pending = nullptr;
    }
    return g->error;
}

int test_peers_exchange(const tr_cuda_exchange *parts, int count, void *peers,
                        void *stream) {
    group *g = (group *)peers;
    std::vector<tr_cuda_exchange> mine(parts, parts + count);
    if (g->looks > 0 || g->pending) { // it still works on what was asked before
        return FAILED;
    }
    exchanges++;
    bool refused, fails = test_is_chosen(TEST_EXCHANGE, &refused);
    g->error = fails && refused ? FAILED : 0;
    g->looks = LOOKS;
    g->stream = stream;
    g->pending = [g, mine, fails] {
        if (fails) {
            g->error = FAILED;
            while (!g->broken) { // as a connection that is lost
                usleep(50);
            }
        }
        for (const tr_cuda_exchange &p : mine) {
            do_part(g, p);
        }
    };
    return 0;
}

// Given up, its stream may still look at it: it stays.
int test_peers_leave(void *peers, bool broken) {
    group *g = (group *)peers;
    g->broken = broken;
    if (!broken) {
        munmap(g->all, sizeof(shared));
        delete g;
    }
    return 0;
}
