// The caller's functions (tr_graph_function), found again in what a plan runs.
#ifndef TR_GRAPH_FUNCTION_H
#define TR_GRAPH_FUNCTION_H

#include <tranche/extend/op.h>
#include <tranche/model.h>

// The function that an op calls, forward or backward; NULL: it is an op of another
// kind.
const tr_function *tr__function_of(const tr_op_desc *desc);
// Its outside_bytes; 0 if the struct is of a version without them.
int64_t tr__function_outside(const tr_function *function);
// Its on_device; false if the struct is of a version without it.
bool tr__function_on_device(const tr_function *function);

#endif
