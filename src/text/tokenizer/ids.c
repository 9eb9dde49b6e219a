#include "text/tokenizer/ids.h"

#include "base/arguments.h"

void tr_token_ids_release(tr_token_ids *ids) {
    tr__free(ids->id);
    *ids = (tr_token_ids){0};
}

tr_status tr_token_ids_add(tr_token_ids *ids, const int32_t *id, size_t count,
                           tr_error *err) {
    static const char own_name[] = "tr_token_ids_add";
    tr_status given = tr__need(ids, own_name, "ids", err);
    if (given != TR_OK) {
        return given;
    }
    return tr__ids_add(ids, id, count)
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for tokens");
}
