// Muon's own hyper-parameters.
#ifndef TR_OPS_OPTIMIZERS_MUON_MUON_H
#define TR_OPS_OPTIMIZERS_MUON_MUON_H

#include "ops/optimizers/optimizer.h"

#include <string.h>

// How the rate follows a matrix's sides.
typedef enum tr_muon_adjust {
    TR_MUON_ORIGINAL,  // sqrt(max(1, rows / columns))
    TR_MUON_MATCH_RMS, // 0.2 sqrt(max(rows, columns)): steps as large as AdamW's
    TR_MUON_SPECTRAL,  // sqrt(rows / columns)
} tr_muon_adjust;

typedef struct tr_muon_hyper {
    double momentum;
    int32_t steps; // of Newton-Schulz
    tr_muon_adjust adjust;
    bool nesterov;
    bool gram;     // iterations on the short side alone
    tr_dtype type; // to which results of the products are rounded
} tr_muon_hyper;

_Static_assert(sizeof(tr_muon_hyper) <= TR_HYPER_BYTES, "they fit in tr_hyper.own");

static inline tr_muon_hyper tr__muon_hyper(const tr_hyper *hyper) {
    tr_muon_hyper own;
    memcpy(&own, hyper->own, sizeof own);
    return own;
}

extern const tr_optimizer tr__optimizer_muon;

#endif
