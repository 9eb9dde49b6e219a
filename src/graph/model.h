// A model as callers hand it over.
#ifndef TR_GRAPH_MODEL_H
#define TR_GRAPH_MODEL_H

#include <tranche/model.h>

// Is a model of the caller's one that this version knows? TR_USAGE: a struct of an
// unknown size, or rewrites that were compiled with other headers.
tr_status tr__model_need(const tr_model *model, const char *function, tr_error *err);

#endif
