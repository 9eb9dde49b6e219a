// How the effective batch is cut: DeepSpeed's three numbers, of which some are given.
//
// T samples make one optimizer step; a micro-batch has m; a rank accumulates g of them;
// there are W ranks. T is cut into ceil(T / m) micro-batches, the last may be short.
//
//     given     the rest                            DeepSpeed's rule, where T divides
//     T, m, g   T must be m * g * W                 the same
//     T, m      g = ceil(T / (m * W))               g = T / m / W
//     T, g      m = T / (g * W), which must divide  m = T / W / g
//     m, g      T = m * g * W                       the same
//     T         m = ceil(T / W), g = 1              m = T / W, g = 1
//     m         T = m * W, g = 1                    the same
//     g, none   an error                            the same
//
// DeepSpeed refuses a T that does not divide; here only a given g makes it an error,
// because then the numbers the user wrote contradict each other.
#ifndef TR_PLAN_FLOW_BATCH_H
#define TR_PLAN_FLOW_BATCH_H

#include <tranche/status.h>

#include <stdint.h>

#define TR_BATCH_MAX                                                                   \
    ((int64_t)1 << 31) // each of T, m, g and W lies in [1, TR_BATCH_MAX]

typedef struct tr_batch_request {
    int64_t train_batch_size;   // T; 0: not given, or "auto"
    int64_t micro_batch;        // m; 0: as above
    int64_t accumulation_steps; // g; 0: as above
    int64_t ranks;              // W
} tr_batch_request;

typedef struct tr_batch_cut {
    int64_t train_batch_size;   // T
    int64_t micro_batch;        // m
    int64_t accumulation_steps; // g
    int64_t ranks;              // W
    int64_t micro_batches;      // ceil(T / m), of all ranks
    int64_t last_micro_batch;   // samples of the last one, 1 .. m
} tr_batch_cut;

// TR_USAGE: numbers that are missing, out of range or contradict each other; the
// message has the keys and values the user wrote and what would fit.
tr_status tr__batch_resolve(const tr_batch_request *request, tr_batch_cut *out,
                            tr_error *err);

#endif
