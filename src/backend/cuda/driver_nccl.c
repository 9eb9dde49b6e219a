// NCCL, which need not be installed: it is opened when several ranks look for it. No
// header of it is needed: what is declared here is from nccl.h of 2.32, as it has been
// since 2.14, the first with communicators that do not block. A configuration says how
// long it is and of which version, and members are only added to it.
//
// Communicators do not block: a call returns while NCCL still works on it, and its
// state tells when the stream has it, so that nobody waits for a rank that has died.
#include "backend/cuda/driver_nccl.h"

#include "backend/cuda/symbol.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

typedef enum nccl_result { SUCCESS = 0, IN_PROGRESS = 7 } nccl_result;
typedef enum nccl_type {
    UINT8 = 1,
    INT64 = 4,
    FLOAT16 = 6,
    FLOAT32 = 7,
    BFLOAT16 = 9
} nccl_type;
enum { SUM = 0, VERSION = 21400 };
static const unsigned magic = 0xcafebeef;

typedef struct nccl_id {
    char internal[128];
} nccl_id;

typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
} nccl_config;

typedef struct nccl_comm nccl_comm;

static struct {
    int (*unique_id)(nccl_id *);
    int (*init)(nccl_comm **, int, nccl_id, int, nccl_config *);
    int (*finalize)(nccl_comm *);
    int (*destroy)(nccl_comm *);
    int (*abort)(nccl_comm *);
    int (*state)(nccl_comm *, int *);
    int (*reduce)(const void *, void *, size_t, int, int, int, nccl_comm *, void *);
    int (*broadcast)(const void *, void *, size_t, int, int, nccl_comm *, void *);
    int (*send)(const void *, size_t, int, int, nccl_comm *, void *);
    int (*receive)(void *, size_t, int, int, nccl_comm *, void *);
    int (*group_start)(void);
    int (*group_end)(void);
    const char *(*error_text)(int);
    const char *missing;
} nccl;

static pthread_once_t looked = PTHREAD_ONCE_INIT;

static void look(void) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        nccl.missing = "NCCL (libnccl.so.2) is not installed";
        return;
    }
    bool all = tr__cuda_symbol(library, "ncclGetUniqueId", &nccl.unique_id) &&
               tr__cuda_symbol(library, "ncclCommInitRankConfig", &nccl.init) &&
               tr__cuda_symbol(library, "ncclCommFinalize", &nccl.finalize) &&
               tr__cuda_symbol(library, "ncclCommDestroy", &nccl.destroy) &&
               tr__cuda_symbol(library, "ncclCommAbort", &nccl.abort) &&
               tr__cuda_symbol(library, "ncclCommGetAsyncError", &nccl.state) &&
               tr__cuda_symbol(library, "ncclReduce", &nccl.reduce) &&
               tr__cuda_symbol(library, "ncclBroadcast", &nccl.broadcast) &&
               tr__cuda_symbol(library, "ncclSend", &nccl.send) &&
               tr__cuda_symbol(library, "ncclRecv", &nccl.receive) &&
               tr__cuda_symbol(library, "ncclGroupStart", &nccl.group_start) &&
               tr__cuda_symbol(library, "ncclGroupEnd", &nccl.group_end) &&
               tr__cuda_symbol(library, "ncclGetErrorString", &nccl.error_text);
    nccl.missing = all ? NULL : "NCCL (libnccl.so.2) is older than 2.14";
}

const char *tr__nccl_missing(void) {
    pthread_once(&looked, look);
    return nccl.missing;
}

const char *tr__nccl_error_text(int error) {
    const char *text = nccl.error_text(error - TR_NCCL_ERROR);
    return text ? text : "an error that NCCL has no words for";
}

// A call that NCCL still works on has not failed.
static int error_of(int result) {
    return result == SUCCESS || result == IN_PROGRESS ? 0 : TR_NCCL_ERROR + result;
}

int tr__nccl_invite(void *invitation) {
    nccl_id id;
    int error = error_of(nccl.unique_id(&id));
    memcpy(invitation, &id, sizeof id);
    return error;
}

int tr__nccl_join(const void *invitation, int members, int member, void **peers) {
    nccl_id id;
    nccl_comm *comm = NULL;
    nccl_config config = {.size = sizeof config, .magic = magic, .version = VERSION};
    memcpy(&id, invitation, sizeof id);
    int error = error_of(nccl.init(&comm, members, id, member, &config));
    *peers = comm;
    return error;
}

int tr__nccl_state(void *peers, bool *busy) {
    int state = SUCCESS;
    int error = error_of(nccl.state(peers, &state));
    *busy = state == IN_PROGRESS;
    return error ? error : error_of(state);
}

static int type_of(tr_comm_type type) {
    switch (type) {
    case TR_COMM_I64:
        return INT64;
    case TR_COMM_F32:
        return FLOAT32;
    case TR_COMM_BF16:
        return BFLOAT16;
    case TR_COMM_F16:
        return FLOAT16;
    default:
        return UINT8;
    }
}

static int put(const tr_cuda_exchange *p, nccl_comm *comm, void *stream) {
    int type = type_of(p->type);
    switch (p->kind) {
    case TR_CUDA_REDUCE:
        return nccl.reduce(p->from, p->to, p->count, type, SUM, p->root, comm, stream);
    case TR_CUDA_SEND:
        return nccl.send(p->from, p->count, type, p->root, comm, stream);
    case TR_CUDA_RECEIVE:
        return nccl.receive(p->to, p->count, type, p->root, comm, stream);
    default:
        return nccl.broadcast(p->from, p->to, p->count, type, p->root, comm, stream);
    }
}

int tr__nccl_exchange(const tr_cuda_exchange *parts, int count, void *peers,
                      void *stream) {
    int error = error_of(nccl.group_start());
    for (int i = 0; i < count && error == 0; i++) {
        error = error_of(put(&parts[i], peers, stream));
    }
    int ended = error_of(nccl.group_end());
    return error ? error : ended;
}

int tr__nccl_leave(void *peers, bool broken) {
    static const double patience = 5, nap = 1e-3; // seconds
    double until = tr__seconds() + patience;
    bool busy = true;
    int error = broken ? 0 : error_of(nccl.finalize(peers));
    while (!broken && error == 0 && busy && tr__seconds() < until) {
        error = tr__nccl_state(peers, &busy);
        tr__sleep(nap);
    }
    return error_of(broken || busy || error ? nccl.abort(peers) : nccl.destroy(peers));
}
