// Devices of several ranks that exchange by themselves, in the order of a queue: no
// message of the host carries what they exchange. All calls but `missing` are for one
// thread at a time.
#ifndef TR_BACKEND_PEERS_H
#define TR_BACKEND_PEERS_H

#include "backend/queue.h"
#include "comm/comm.h"

typedef struct tr_peers tr_peers; // a group, as one of its members sees it

enum { TR_PEERS_INVITATION = 128 }; // bytes

typedef struct tr_peer_table {
    const char *name; // of the library, for messages
    // Bytes of a device's memory that the library takes, at most; beside the plan's.
    int64_t beside;
    // NULL: it is here; else why not, in words.
    const char *(*missing)(void);
    // Member 0 of a group writes an invitation, which all its members are given.
    // invitation: [TR_PEERS_INVITATION]. TR_COMM.
    tr_status (*invite)(void *invitation, tr_error *err);
    // Begins to join the others, who may come later.
    tr_status (*join)(const void *invitation, int members, int member, tr_peers **out,
                      tr_error *err);
    // Has the group come together? Does not wait. TR_COMM: it never will.
    tr_status (*joined)(tr_peers *peers, bool *all, tr_error *err);
    // Puts an exchange of device memory into the queue, whose next mark ends it. `add`
    // is not supported. The members put in the same ones in one order. Faults come up
    // where somebody looks.
    void (*exchange)(tr_peers *peers, tr_device_queue *queue, const tr_comm_op *op);
    // Nothing may be under way, or, with `broken`, what is under way is given up: after
    // that the queue can be waited for. NULL-safe.
    void (*leave)(tr_peers *peers, bool broken);
} tr_peer_table;

#endif
