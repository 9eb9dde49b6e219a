// Traces: when each step of a plan was at work, simulated or measured, as a file that
// chrome://tracing and ui.perfetto.dev show.
#ifndef TR_PLAN_PRINT_TRACE_H
#define TR_PLAN_PRINT_TRACE_H

#include "plan/flow/plan.h"

#include <stdio.h>

// A step, or an operation of the ranks that it has started, at work on a stream.
typedef struct tr_span {
    int32_t step; // of the rank's own sequence: ranks may have updates in fewer pieces
    tr_verb verb; // the step's, as what follows
    tr_subject subject;
    int32_t unit;
    int64_t micro;
    bool of_micro_batch;
    tr_stream stream;
    double begin, end; // seconds since the sequence began
} tr_span;

// The spans of one rank.
typedef struct tr_rank_spans {
    int64_t rank;
    const tr_span *spans; // [count]
    size_t count;
} tr_rank_spans;

// At work on a stream, from and to seconds since the sequence began.
tr_span tr__span_of(const tr_sequence *sequence, int32_t step, tr_stream stream,
                    double begin, double end);

// Writes JSON trace events: a process for each rank, a thread for each stream.
// `what` ("simulated", "step 2") is put beside the rank in its process's name. TR_IO.
tr_status tr__trace_write(const tr_plan *plan, const char *what,
                          const tr_rank_spans *ranks, size_t count, FILE *to,
                          tr_error *err);

#endif
