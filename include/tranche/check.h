// Is a model right in every cut?
//
// Tries the model's own ops, then makes one optimizer step of a run in several cuts and
// precisions, and compares the gradients. A cut changes rounding and nothing else. A
// larger difference shows a mistake in the model or its loss. Examples are a loss
// divided by the size of the micro-batch, a statistic over the micro-batch alone, and
// an op that overwrites a gradient instead of adding to it.
#ifndef TRANCHE_CHECK_H
#define TRANCHE_CHECK_H

#include <tranche/run.h>

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

// A tensor with a larger distance allowed than this is not decided: rounding alone
// moves it so far that a mistake of 5% could hide in it.
#define TR_CHECK_DECIDED 0.05

// One way to make the step. The distance of a tensor is that of its gradient g from its
// gradient f in the first cut: |g - f| / max(|f|, 1e-3 |F|). Norms are Euclidean, and F
// is the gradient of the whole model: a gradient next to zero is rounding alone.
typedef struct tr_check_cut {
    char name[TR_CHECK_TEXT];    // in words: "micro-batches of 3"
    char skipped[TR_CHECK_TEXT]; // why this cut was left out; "": it was made
    bool same_bits;              // no bit may differ
    double tolerance; // the distance allowed for all tensors; 0: each has its own,
                      // which was measured, because something is in 16 or 8 bits
    double loss, grad_norm;
    double loss_allowed; // |loss - that of the first cut|
    double *distance;    // [tensors of the check]
    double *allowed;     // [tensors of the check] the largest that rounding explains
    size_t undecided;    // tensors with more than TR_CHECK_DECIDED allowed
    size_t worst; // the tensor whose distance is the largest part of the allowed one
    bool passed;  // all distances, and the loss, are within what is allowed
} tr_check_cut;

// An op of the model that is not the library's. tr_op_check has tried it, in f32, on
// operands of the shapes that the model gives it. Values are drawn a few times, because
// some may lie next to a kink: the op passes if finite differences agree with its
// backward in one draw. If results are not finite, positive values are drawn.
typedef struct tr_check_op {
    char name[TR_CHECK_TEXT];
    char kind[TR_CHECK_TEXT];     // of the first unit that has it
    char message[TR_MESSAGE_MAX]; // what is wrong, or why it was not tried; ""
    bool tried, passed;
} tr_check_op;

// The structs in its lists keep their size. A later version of the library puts further
// members into lists of their own, behind these.
typedef struct tr_check {
    size_t size;      // of this struct; the library fills no more
    tr_check_op *ops; // each with its attributes and shapes once
    size_t op_count;
    tr_check_tensor *tensors;
    size_t tensor_count;
    tr_check_cut *cuts; // the first is the run as its file has it
    size_t cut_count;   // 0: an op is wrong, so that no cut was made
    bool passed;        // every op that was tried, and every cut that was made
} tr_check;

// Makes the first step of the run, from its initial weights, in each cut. Writes no
// files. Takes the memory of one step and of one more copy of the gradients.
// `run`: made for training, resolved or not. It stays as it is, and its keys that
// resume or trace are ignored. `tolerance`: for cuts in f32; 0 means 1e-4. For 16 bits
// the check measures, tensor by tensor, how much rounding can explain. It repeats the
// first cut several times from weights that are each moved by up to half the distance
// between two numbers of the type. In fp16 it lowers the loss scale until nothing
// overflows. The caller destroys *out. Not collective: one process. Errors: those of
// tr_run_resolve and tr_engine_create. TR_USAGE: there are several ranks, or the run's
// gradients cannot be read (reproducible mode, or gradients on NVMe). TR_NUMBERS:
// gradients are not finite.
TR_API tr_status tr_check_run(const tr_run *run, double tolerance, tr_check **out,
                              tr_error *err);
TR_API void tr_check_destroy(tr_check *check); // NULL-safe

// Prints a line for each of the model's own ops, and a line for each cut, with the
// tensor that is farthest off. It names the tensors that are not decided. With `every`,
// each tensor of each cut has a line. The second function prints everything as one JSON
// object. TR_IO: `to` takes no more; TR_MEMORY.
TR_API tr_status tr_check_print(const tr_check *check, bool every, const tr_sink *to,
                                tr_error *err);
TR_API tr_status tr_check_print_json(const tr_check *check, const tr_sink *to,
                                     tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
