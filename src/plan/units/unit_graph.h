// The graph of a unit as its programs are made of it: by the model's code, and by rows
// of rewrites.
#ifndef TR_PLAN_UNITS_UNIT_GRAPH_H
#define TR_PLAN_UNITS_UNIT_GRAPH_H

#include "plan/units/program.h"

// Behind these inputs [input_count]. The caller destroys *out. Its hash
// (tr__graph_hash) tells units of one kind apart that rows rewrite differently.
tr_status tr__unit_graph(const tr_compile_request *request, const tr_model_unit *unit,
                         const tr_tensor_desc *inputs, int input_count,
                         const tr_batch_tensors *batch, tr_graph **out, tr_error *err);

// The tokens of a sample; 0: it has none.
int64_t tr__tokens_of(const tr_model *model);
// The tokens of a sample along which ranks cut what lies between the layers' products
// (sequence parallelism); 0: they do not.
int64_t tr__cut_tokens_of(const tr_plan_request *request);

#endif
