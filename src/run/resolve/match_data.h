// Does a data set deliver what a model takes?
#ifndef TR_RUN_RESOLVE_MATCH_DATA_H
#define TR_RUN_RESOLVE_MATCH_DATA_H

#include <tranche/data.h>
#include <tranche/model.h>

// Matches the tensors of both by name. TR_DATA: one is missing on either side, or is of
// another type or shape; or the data have more classes than the model.
tr_status tr__data_match(const tr_dataset *data, const tr_model *model, tr_error *err);

#endif
