// Devices of several ranks that exchange by themselves, in the order of a queue: no
// message of the host carries what they exchange. A group is for any thread, but one
// thread alone may put exchanges in, and nobody may use it while it is left.
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
    // Has the group come together, and is in the queue what was put into it last? Does
    // not wait. A group that is given up is ready. TR_COMM: the group has failed.
    tr_status (*look)(tr_peers *peers, bool *ready, tr_error *err);
    // Puts an exchange of device memory into the queue. What follows may be put in only
    // when the group is ready again. `add` is not supported. The members put in the
    // same ones in one order. Faults come up where somebody looks.
    void (*exchange)(tr_peers *peers, tr_device_queue *queue, const tr_comm_op *op);
    // What is under way will not be done: after that the queue can be waited for.
    void (*give_up)(tr_peers *peers);
    // Nothing may be under way, but in a group that is given up. NULL-safe.
    void (*leave)(tr_peers *peers);
} tr_peer_table;

#endif
