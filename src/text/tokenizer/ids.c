#include "text/tokenizer/ids.h"

void tr_token_ids_release(tr_token_ids *ids) {
    tr__free(ids->id);
    *ids = (tr_token_ids){0};
}

tr_status tr_token_ids_add(tr_token_ids *ids, const int32_t *id, size_t count,
                           tr_error *err) {
    return tr__ids_add(ids, id, count)
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for tokens");
}
