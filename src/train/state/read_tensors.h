// Weights, optimizer states and model states, read from files into an executor.
#ifndef TR_TRAIN_STATE_READ_TENSORS_H
#define TR_TRAIN_STATE_READ_TENSORS_H

#include "base/log.h"
#include "exec/executor.h"
#include "files/safetensors/tensor_set.h"

#include <tranche/model.h>

enum { TR_TENSOR_NAME_MAX = 256 };

// The number of a checkpoint that says how the first state was kept (tr_state_type).
#define TR_STATE_TYPE_NUMBER "state_type"

// The name of a parameter in files, or of one of its optimizer states:
// "<name>.exp_avg". dst: [TR_TENSOR_NAME_MAX].
void tr__tensor_name(const tr_plan *plan, int param, const char *state, char *dst);

// Of a state in 8 bits, the name of the scales of its blocks: "<name>.exp_avg_absmax".
void tr__scales_name(const tr_plan *plan, int param, const char *state, char *dst);

// Tensors in files, and what they are called in messages.
typedef struct tr_weights_source {
    const tr_tensor_set *set;
    const char *path;
    // Of tensors whose rows are tokens: how many rows they have there (0: as many as
    // the model says), and how many of them are read (0: all that the model has).
    int64_t rows, used;
    // Of a run with an adapter: the base alone, or what is trained alone.
    enum { TR_READS_ALL, TR_READS_FROZEN, TR_READS_TRAINED } reads;
    bool drawn; // an adapter's tensors that are not there stay what they are
    // Heads that the set does not have (tr__model_may_lack) stay what they are. NULL:
    // all is needed.
    const tr_model *may_lack;
    const tr_log *log; // is told how far reading has come; NULL: nobody
} tr_weights_source;

// Fills what this rank holds of all parameters of a plan (state -1; of another name
// than the values' own: state_name), or
// of one optimizer state. TR_IO: missing, or of another shape. Rows that are not there
// stay what they are.
tr_status tr__read_parameters(const tr_weights_source *from, const tr_plan *plan,
                              tr_executor *executor, int state, const char *state_name,
                              tr_error *err);
// Fills the model's own states from a file with its parameters.
tr_status tr__read_states(const tr_tensor_set *set, const char *path,
                          const tr_plan *plan, tr_executor *executor, tr_error *err);

#endif
