#include "backend/host/nvme.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8 }; // a disk reads as fast with eight at once as with more

// Slots that wait for a thread, or for the caller, oldest first. A slot is in one list
// at most.
typedef struct list {
    int slots[TR_NVME_SLOTS];
    int64_t first, last; // counts
} list;

typedef struct threads {
    tr_nvme base;
    int file;
    pthread_t threads[THREADS];
    int count; // of them
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    // Under the lock.
    list begun, ended;
    bool stop;
} threads;

static void push(list *l, int slot) {
    l->slots[l->last++ % TR_NVME_SLOTS] = slot;
}

static int pop(list *l) {
    return l->first < l->last ? l->slots[l->first++ % TR_NVME_SLOTS] : -1;
}

// ---- the threads' side

static int64_t transfer(int file, const tr_nvme_transfer *t) {
    size_t bytes = (size_t)t->bytes;
    ssize_t result = t->write ? pwrite(file, t->memory, bytes, t->offset)
                              : pread(file, t->memory, bytes, t->offset);
    return result < 0 ? -errno : result;
}

static void *run(void *argument) {
    threads *w = argument;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        int slot = pop(&w->begun);
        if (slot < 0) {
            pthread_cond_wait(&w->more, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        w->base.slots[slot].result = transfer(w->file, &w->base.slots[slot]);
        pthread_mutex_lock(&w->lock);
        push(&w->ended, slot);
        pthread_cond_signal(&w->done);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// ---- the caller's side

static int begin(tr_nvme *nvme, int slot) {
    threads *w = (threads *)nvme;
    pthread_mutex_lock(&w->lock);
    push(&w->begun, slot);
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static int end(tr_nvme *nvme, double seconds) {
    threads *w = (threads *)nvme;
    struct timespec until = tr__clock_after(seconds);
    int result = 0;
    pthread_mutex_lock(&w->lock);
    int slot = pop(&w->ended);
    while (slot < 0 && seconds != 0 && result == 0) {
        result = seconds < 0 ? pthread_cond_wait(&w->done, &w->lock)
                             : pthread_cond_timedwait(&w->done, &w->lock, &until);
        slot = pop(&w->ended);
    }
    pthread_mutex_unlock(&w->lock);
    return slot;
}

static void destroy(tr_nvme *nvme) {
    threads *w = (threads *)nvme;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->count; i++) {
        pthread_join(w->threads[i], NULL);
    }
    pthread_cond_destroy(&w->done);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    close(w->file);
    tr__free(w);
}

static const tr_nvme_method method = {"threads", begin, end, NULL, destroy};

tr_status tr__nvme_threads_create(int file, tr_nvme **out, tr_error *err) {
    threads *w = tr__calloc(1, sizeof *w);
    *out = NULL;
    if (!w) {
        close(file);
        return tr_fail(err, TR_MEMORY, "no memory for the threads that read NVMe");
    }
    w->base.method = &method;
    w->file = file;
    pthread_mutex_init(&w->lock, NULL);
    tr__condition_init(&w->more);
    tr__condition_init(&w->done);
    for (; w->count < THREADS; w->count++) {
        int result = tr__thread_start(run, w, &w->threads[w->count]);
        if (result != 0 && w->count == 0) {
            destroy(&w->base);
            return tr_fail(err, TR_INTERNAL, "cannot start a thread to read NVMe: %s",
                           strerror(result));
        }
        if (result != 0) {
            break;
        }
    }
    *out = &w->base;
    return TR_OK;
}
