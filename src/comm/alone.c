#include "comm/alone.h"

bool tr__comm_leads(const tr_comm *comm) {
    return !comm || tr_comm_rank(comm) == 0;
}

int tr__comm_count(const tr_comm *comm) {
    return comm ? tr_comm_ranks(comm) : 1;
}

tr_status tr__agree(tr_comm *comm, tr_status status, const tr_error *mine,
                    tr_error *err) {
    tr_error own = {0};
    if (status != TR_OK) {
        tr_fail(&own, status, "%s",
                mine->status != TR_OK ? mine->message : tr_status_words(status));
    }
    if (comm) {
        return tr_comm_agree(comm, &own, err);
    }
    return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", own.message);
}
