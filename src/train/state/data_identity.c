#include "train/state/data_identity.h"

#include "data/sources/dataset.h"

#include <stdbool.h>

// Numbers of a checkpoint are doubles: a hash is two of them.
static const char *const low_name = "data_hash_low",
                         *const high_name = "data_hash_high",
                         *const held_name = "data_held";

void tr__data_identity_put(const tr_dataset *data, tr_state *state) {
    if (!data) { // the caller's, of which nothing is known
        return;
    }
    const tr_data_identity *identity = tr__dataset_identity(data);
    state->dataset_hash = tr_dataset_hash(data);
    tr__state_numbers_set(&state->numbers, low_name,
                          (double)(identity->whole & UINT32_MAX));
    tr__state_numbers_set(&state->numbers, high_name, (double)(identity->whole >> 32));
    tr__state_numbers_set(&state->numbers, held_name, (double)identity->held);
}

static bool has_half(const tr_state *state, const char *name, uint64_t half) {
    double value = -1;
    return tr__state_numbers_get(&state->numbers, name, &value) &&
           value == (double)half;
}

// The same data, whatever was set aside of it.
static bool same_whole(const tr_data_identity *identity, const tr_state *state) {
    return has_half(state, low_name, identity->whole & UINT32_MAX) &&
           has_half(state, high_name, identity->whole >> 32);
}

static tr_status other_split(const tr_dataset *data, const tr_state *state,
                             const char *folder, tr_error *err) {
    double held = 0;
    tr__state_numbers_get(&state->numbers, held_name, &held);
    return tr_fail(err, TR_IO,
                   "%s: was trained on this data with %.0f samples set aside for "
                   "validation, and now there are %lld, so the training samples are "
                   "others: set data.validation as it was, or give the folder as the "
                   "model and another \"out\" folder",
                   folder, held, (long long)tr__dataset_identity(data)->held);
}

tr_status tr__data_identity_check(const tr_dataset *data, const tr_state *state,
                                  const char *folder, const tr_log *log,
                                  tr_error *err) {
    if (!data) {
        return TR_OK;
    }
    const tr_data_identity *identity = tr__dataset_identity(data);
    double held;
    bool by_content = tr__state_numbers_get(&state->numbers, held_name, &held);
    if (state->dataset_hash == tr_dataset_hash(data)) {
        return TR_OK;
    }
    if (!by_content && state->dataset_hash == identity->names) {
        tr__note(log,
                 "%s: an earlier version wrote this checkpoint, with the names and "
                 "sizes of the data's files but no hash of their content, so a changed "
                 "content goes unnoticed. The next checkpoint has the hash",
                 folder);
        return TR_OK;
    }
    if (by_content && same_whole(identity, state)) {
        return other_split(data, state, folder, err);
    }
    return tr_fail(err, TR_IO,
                   "%s: was trained on other data (the content, sizes or order of its "
                   "files, or how they are read); to train its weights on this data, "
                   "give the folder as the model and another \"out\" folder",
                   folder);
}
