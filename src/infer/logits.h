// What a model says of one position, before anything is made of it.
#ifndef TR_INFER_LOGITS_H
#define TR_INFER_LOGITS_H

#include <tranche/status.h>

#include <stdint.h>

// logits: [classes]. -INFINITY excludes a class; nothing else may be without bound, and
// one at least is finite. TR_NUMBERS: it is otherwise.
tr_status tr__logits_check(const float *logits, int64_t classes, tr_error *err);

#endif
