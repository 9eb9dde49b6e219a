// For callers that may have no ranks: comm NULL is this process alone.
#ifndef TR_COMM_ALONE_H
#define TR_COMM_ALONE_H

#include "comm/comm.h"

// Is this rank 0, which does what is done once?
bool tr__comm_leads(const tr_comm *comm);
int tr__comm_count(const tr_comm *comm); // ranks

// tr_comm_agree with this rank's status and message apart. Collective.
tr_status tr__agree(tr_comm *comm, tr_status status, const tr_error *mine,
                    tr_error *err);

// An error that only this rank knows of, while the others wait for it: ends all of them
// with it (tr_comm_abandon). Returns it as they hear it, or an earlier one that they
// have heard already. Not collective.
tr_status tr__abandon(tr_comm *comm, tr_status status, const tr_error *mine,
                      tr_error *err);

#endif
