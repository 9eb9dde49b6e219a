#include "config/internal.h"

tr_status tr__config_problem(tr_config *config, const tr_error *found, tr_error *err) {
    if (found->status != TR_USAGE) {
        return tr_fail(err, found->status, "%s", found->message);
    }
    tr__problems_add(&config->problems, found);
    return TR_OK;
}
