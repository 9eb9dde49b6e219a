// Ranks compare how they fared. Words go first, which are small; the message that
// counts follows only where there is one.
#include "comm/transport.h"

#include "base/checked.h"
#include "base/hash.h"

#include <string.h>

// The lowest rank that brings an error; -1: none. *same: all bring that one.
static int find_first(const tr_word *words, int ranks, bool *same) {
    int first = -1;
    *same = true;
    for (int r = ranks - 1; r >= 0; r--) {
        first = words[r].status == TR_OK ? first : r;
        *same = *same && words[r].status == words[0].status &&
                words[r].message == words[0].message;
    }
    return first;
}

tr_status tr_comm_most(tr_comm *comm, int64_t mine, int64_t *most, tr_error *err) {
    tr_word own = {mine, 0};
    *most = mine;
    if (!comm) {
        return TR_OK;
    }
    tr_status status = tr__comm_all_gather(comm, &own, sizeof own, comm->words, err);
    for (int r = 0; r < comm->ranks && status == TR_OK; r++) {
        *most = tr__max_i64(*most, comm->words[r].status);
    }
    return status;
}

tr_status tr_comm_agree(tr_comm *comm, const tr_error *mine, tr_error *err) {
    tr_error word = mine && mine->status != TR_OK ? *mine : (tr_error){0};
    tr_word own = {word.status, tr__hash_text(word.message)};
    tr_error broken = {0};
    bool same = false;
    int first = -1;
    tr_status status =
        tr__comm_all_gather(comm, &own, sizeof own, comm->words, &broken);
    if (status == TR_OK) {
        first = find_first(comm->words, comm->ranks, &same);
        if (first < 0) {
            return TR_OK;
        }
        status = tr__comm_broadcast(comm, first, &word, sizeof word, &broken);
    }
    if (err) {
        *err = (tr_error){0}; // it may be `mine`
    }
    if (status != TR_OK) {
        return tr_fail(err, status, "%s", broken.message);
    }
    word.message[sizeof word.message - 1] = '\0';
    return same ? tr_fail(err, word.status, "%s", word.message)
                : tr_fail(err, word.status, "rank %d: %s", first, word.message);
}
