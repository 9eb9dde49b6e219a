// One optimizer step of a run in several cuts and precisions, and how far their
// gradients differ. A cut changes nothing but rounding, so a larger difference is a
// mistake of the model or of its loss: a loss that is divided where it must not be, a
// statistic over the micro-batch alone, a gradient that an op does not add up.
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

// One way to make the step. Distances are those of tensor t's gradient g from the first
// cut's f: |g - f| / max(|f|, least |F|), with norms over elements and F the gradient
// of the whole model: a tensor whose gradient is next to nothing has no digits to agree
// in.
typedef struct tr_check_cut {
    char name[TR_CHECK_TEXT];    // in words: "micro-batches of 3"
    char skipped[TR_CHECK_TEXT]; // why it was not made; "": it was
    bool same_bits;              // it may not differ at all
    double tolerance;            // the largest distance that is right
    double least;                // 1e-6, and more where one of them is of 16 bits
    double loss, grad_norm;
    double *distance; // [tensors of the check]
    size_t worst;     // the tensor of the largest distance
    bool passed;      // and the loss is within the tolerance of the first cut's
} tr_check_cut;

typedef struct tr_check {
    tr_check_tensor *tensors;
    size_t tensor_count;
    tr_check_cut *cuts; // the first is the run as its file has it
    size_t cut_count;
    bool passed; // every cut that was made
} tr_check;

// Makes the first step of the run, from its first weights, in each cut. Writes no
// files. `options`: as for training; what resumes or traces is ignored. Takes the
// memory of one step and of one more copy of the gradients. `tolerance`: of cuts in
// f32; 0: 1e-4. Cuts of 16 bits have tolerances of their own. In fp16 the loss scale is
// lowered until nothing overflows. Not collective: one process. Errors: as tr_run_open
// and tr_engine_create for the run as it is; TR_USAGE: several ranks, a run whose
// gradients cannot be read (reproducible mode, or NVMe); TR_NUMBERS: its gradients are
// not finite.
tr_status tr_check_run(const tr_run_options *options, double tolerance, tr_check **out,
                       tr_error *err);
void tr_check_destroy(tr_check *check); // NULL-safe

// A line for each cut, with the tensor that is farthest off; `every`: every tensor. Or
// everything as one JSON object.
void tr_check_print(const tr_check *check, bool every, FILE *to);
tr_status tr_check_print_json(const tr_check *check, FILE *to, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
