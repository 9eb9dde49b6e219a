// An adapter's base as it was when the adapter was trained: in few bits, perhaps.
#ifndef TR_INFER_TRAINED_BASE_H
#define TR_INFER_TRAINED_BASE_H

#include <tranche/extend/plan.h>
#include <tranche/model.h>

// How a checkpoint of an adapter says that its base was kept; other folders say
// nothing: TR_QUANTIZED_NOT.
tr_quantization tr__trained_quantization(const char *folder);

// Asks for the same in an inference of the model. It must outlive the request.
void tr__ask_for_trained_base(const char *folder, const tr_model *model,
                              tr_plan_request *request);

#endif
