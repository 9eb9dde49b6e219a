#include "graph/model.h"

#include "base/arguments.h"

#include <tranche/extend/version.h>

tr_status tr__model_need(const tr_model *model, const char *function, tr_error *err) {
    static const tr_sized known = {"tr_model", "TR_MODEL_INIT", sizeof *model, 0};
    tr_status status = tr__need_sized(model, &known, function, err);
    if (status != TR_OK || !model->rewrites ||
        model->rewrites_version == TRANCHE_EXTEND_VERSION) {
        return status;
    }
    return tr_fail(err, TR_USAGE,
                   "%s: the rewrites of a model were compiled with the headers of "
                   "version %d, and the library is of version %d: compile them again, "
                   "and set rewrites_version to TRANCHE_EXTEND_VERSION",
                   function, model->rewrites_version, TRANCHE_EXTEND_VERSION);
}
