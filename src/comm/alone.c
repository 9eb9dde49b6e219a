#include "comm/alone.h"

bool tr__comm_leads(const tr_comm *comm) {
    return !comm || tr_comm_rank(comm) == 0;
}

int tr__comm_count(const tr_comm *comm) {
    return comm ? tr_comm_ranks(comm) : 1;
}

static tr_error error_of(tr_status status, const tr_error *mine) {
    tr_error own = {0};
    if (status != TR_OK) {
        tr_fail(&own, status, "%s",
                mine->status != TR_OK ? mine->message : tr_status_words(status));
    }
    return own;
}

tr_status tr__agree(tr_comm *comm, tr_status status, const tr_error *mine,
                    tr_error *err) {
    tr_error own = error_of(status, mine);
    if (comm) {
        return tr_comm_agree(comm, &own, err);
    }
    return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", own.message);
}

tr_status tr__abandon(tr_comm *comm, tr_status status, const tr_error *mine,
                      tr_error *err) {
    tr_error own = error_of(status, mine), told = {0};
    if (comm) {
        tr_comm_abandon(comm, &own);
        tr__comm_wait(comm, TR_COMM_RANKS, tr__comm_newest(comm, TR_COMM_RANKS), &told);
    }
    return told.status != TR_OK ? tr_fail(err, told.status, "%s", told.message)
                                : tr_fail(err, status, "%s", own.message);
}
