// Descriptors of the stand-in for cuDNN, and graphs of operations on the host's memory.
#ifndef TEST_CUDA_LIBRARIES_CUDNN_TENSOR_H
#define TEST_CUDA_LIBRARIES_CUDNN_TENSOR_H

#include "backend/cuda/cudnn_names.h"

#include <stdbool.h>
#include <stdint.h>

enum { DNN_RANK = 4, DNN_OPERATIONS = 64 };

typedef struct dnn dnn;

// One structure for all kinds: each uses some fields.
struct dnn {
    int kind;
    bool final;
    uint64_t given; // bit i: rule i of its attributes has been set
    // of a tensor
    int64_t id, alignment, rank, dim[DNN_RANK], stride[DNN_RANK];
    int32_t type;
    bool is_virtual, by_value;
    char *memory; // while it is executed: the caller's, or its own
    // of operations: mode, math or operator; how is their descriptor without operands
    int32_t mode, math;
    int64_t axis;
    dnn *how, *x, *b, *t, *y;
    // of graphs and what is made of them
    void *handle;
    int64_t count;
    dnn *operations[DNN_OPERATIONS], *graph, *engine, *config;
    int64_t number, workspace;
    bool deterministic;
    // of a variant pack
    int64_t id_count, ids[DNN_OPERATIONS];
    void *at[DNN_OPERATIONS], *memory_of_work;
};

// Do the shapes of a finalized operation's operands go together?
bool dnn_fits(const dnn *operation);
// Makes y of a finalized operation whose operands have memory.
void dnn_compute(const dnn *operation);
int64_t dnn_bytes(const dnn *tensor); // from its first element to its last

#endif
