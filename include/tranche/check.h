// Makes one optimizer step of a run in several cuts and precisions, and compares the
// gradients. A cut changes rounding and nothing else. A larger difference shows a
// mistake of the model or of its loss: a loss divided by the size of the micro-batch, a
// statistic over the micro-batch alone, or an op that overwrites a gradient instead of
// adding to it.
#ifndef TRANCHE_CHECK_H
#define TRANCHE_CHECK_H

#include <tranche/run.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TR_CHECK_TEXT = 200 };

// A tensor of the model, or a slice of it where it is used in slices.
typedef struct tr_check_tensor {
    char *name;
    int64_t count; // elements
    double norm;   // of its gradient in the first cut
} tr_check_tensor;

// One way to make the step. The distance of a tensor is that of its gradient g from its
// gradient f in the first cut: |g - f| / max(|f|, least |F|). Norms are Euclidean, and
// F is the gradient of the whole model. `least` keeps rounding alone from making a
// large distance of a gradient near zero.
typedef struct tr_check_cut {
    char name[TR_CHECK_TEXT];    // in words: "micro-batches of 3"
    char skipped[TR_CHECK_TEXT]; // why this cut was left out; "": it was made
    bool same_bits;              // no bit may differ
    double tolerance;            // the largest distance that passes
    double least;                // 1e-6; larger where a cut computes in 16 bits
    double loss, grad_norm;
    double *distance; // [tensors of the check]
    size_t worst;     // the tensor of the largest distance
    bool passed;      // all distances, and the loss, are within the tolerance
} tr_check_cut;

typedef struct tr_check {
    tr_check_tensor *tensors;
    size_t tensor_count;
    tr_check_cut *cuts; // the first is the run as its file has it
    size_t cut_count;
    bool passed; // every cut that was made
} tr_check;

// Makes the first step of the run, from its initial weights, in each cut. Writes no
// files. Takes the memory of one step and of one more copy of the gradients.
// `options`: as for training; those that resume or trace are ignored. `tolerance`: for
// cuts in f32; 0 means 1e-4. Cuts in 16 bits have tolerances of their own. In fp16 the
// check lowers the loss scale until nothing overflows.
// The caller destroys *out. Not collective: one process. Errors: those of tr_run_open
// and tr_engine_create. TR_USAGE: there are several ranks, or the run's gradients
// cannot be read (reproducible mode, or gradients on NVMe). TR_NUMBERS: gradients are
// not finite.
tr_status tr_check_run(const tr_run_options *options, double tolerance, tr_check **out,
                       tr_error *err);
void tr_check_destroy(tr_check *check); // NULL-safe

// Prints a line for each cut with the tensor of the largest distance; with `every`, a
// line for each tensor. The second function prints everything as one JSON object.
// TR_IO: `to` cannot be written; TR_MEMORY.
void tr_check_print(const tr_check *check, bool every, FILE *to);
tr_status tr_check_print_json(const tr_check *check, FILE *to, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
