// The guard's memory: mapped twice. The host has addresses at which nothing can be read
// or written; kernels, copies and messages get those of the other mapping.
#include "base/memory.h"
#include "guard/guard.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 1 << 16 };

typedef struct mapped {
    char *shown, *real;
    size_t length;
    struct mapped *next;
} mapped;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mapped *all; // under the lock

// Memory is no file: a test's limit on files does not hold for it.
static bool make_long(int file, size_t length) {
    struct rlimit limit, none;
    getrlimit(RLIMIT_FSIZE, &limit);
    none = (struct rlimit){limit.rlim_max, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    bool good = ftruncate(file, (off_t)length) == 0;
    setrlimit(RLIMIT_FSIZE, &limit);
    return good;
}

// The file is closed at once: tests count those that are open.
static bool map(mapped *m, size_t bytes) {
    int file = memfd_create("guard", MFD_CLOEXEC);
    m->length = (bytes + PAGE - 1) / PAGE * PAGE;
    if (file < 0 || !make_long(file, m->length)) {
        return false;
    }
    m->shown = mmap(NULL, m->length, PROT_NONE, MAP_SHARED, file, 0);
    m->real = mmap(NULL, m->length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return m->shown != MAP_FAILED && m->real != MAP_FAILED;
}

static void unmap(mapped *m) {
    munmap(m->shown, m->length);
    munmap(m->real, m->length);
}

static tr_status take(const char *space, size_t bytes, void **memory, char **base,
                      tr_error *err) {
    mapped *m = tr__calloc(1, sizeof *m);
    if (!map(m, bytes)) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena of %zu bytes: %s",
                       space, bytes, strerror(errno));
    }
    pthread_mutex_lock(&lock);
    m->next = all;
    all = m;
    pthread_mutex_unlock(&lock);
    *memory = m;
    *base = m->shown;
    return TR_OK;
}

static tr_status grow(void *memory, const char *space, size_t bytes, char **base,
                      tr_error *err) {
    mapped *m = memory;
    pthread_mutex_lock(&lock);
    mapped old = *m;
    bool good = map(m, bytes);
    if (good) {
        memcpy(m->real, old.real, old.length);
        unmap(&old);
    }
    pthread_mutex_unlock(&lock);
    *base = m->shown;
    return good ? TR_OK
                : tr_fail(err, TR_MEMORY, "the %s arena cannot grow to %zu bytes: %s",
                          space, bytes, strerror(errno));
}

static void give_back(void *memory) {
    mapped *m = memory;
    pthread_mutex_lock(&lock);
    for (mapped **at = &all; *at; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    unmap(m);
    tr__free(m);
}

const tr_memory_source test_guard_memory = {
    .take = take, .grow = grow, .give_back = give_back};

void *test_guard_reach(void *address) {
    char *at = address;
    void *real = address;
    pthread_mutex_lock(&lock);
    for (const mapped *m = all; m && at; m = m->next) {
        if (at >= m->shown && at < m->shown + m->length) {
            real = m->real + (at - m->shown);
        }
    }
    pthread_mutex_unlock(&lock);
    return real;
}

void test_guard_launch(const tr_kernel *kernel, const tr_op_desc *desc, void *state,
                       const tr_launch *launch) {
    tr_launch real = *launch;
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        real.in[i] = test_guard_reach((void *)launch->in[i]);
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        real.out[i] = test_guard_reach(launch->out[i]);
    }
    real.workspace = test_guard_reach(launch->workspace);
    real.packed = test_guard_reach(launch->packed);
    kernel->launch(desc, state, &real);
}
