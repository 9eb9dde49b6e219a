// Runs a unit's graph by reference kernels, in memory of its own for each value: the
// forward, and the backward either as derived or in the most obvious way.
#ifndef TEST_GRAPH_INTERPRET_H
#define TEST_GRAPH_INTERPRET_H

#include "graph/derive.h"

typedef struct test_run {
    tr_graph *graph;
    const tr_derivation *derived; // NULL: run the obvious way
    int64_t rows;                 // of one micro-batch
    int micros;
    void **memory; // [values][micros]; one for all micros where the tensor is one
    size_t values;
} test_run;

// Inputs, data and parameters are drawn: the row, not the cut, decides what is in it.
void test_run_begin(test_run *run, tr_graph *graph, const tr_derivation *derived,
                    int64_t rows, int micros);
void test_run_end(test_run *run);

void *test_run_value(const test_run *run, tr_value value, int micro);
int64_t test_run_bytes(const test_run *run, tr_value value);

// Segment by segment over the micro-batches; the loss, which the backward runs, is left
// out.
void test_run_forward(test_run *run);
// Spoils every forward value that the derivation does not say is kept. With `again`,
// also those that are made again from the boundary, and makes them.
void test_run_forget(test_run *run, bool again);
// As derived. Gradients of outputs are drawn like inputs.
void test_run_backward(test_run *run);

// The obvious way, on one micro-batch: every value has one gradient, which begins with
// zeros (with what comes in, for outputs); rules add to it, from the last node to the
// first. grad: [values], allocated here.
void test_run_obvious(test_run *run, float **grad);

#endif
