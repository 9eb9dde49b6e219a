#ifndef TR_OPS_FLAT_UPDATE_CPU_PACKED_H
#define TR_OPS_FLAT_UPDATE_CPU_PACKED_H

#include "ops/optimizers/cpu_optimizer.h"

// The update by a kernel of f32. Bits depend neither on the number of threads nor on
// how a range is cut at blocks of its states.
void tr__update_packed(tr_update_kernel *kernel, int level, const tr_hyper *hyper,
                       const tr_update *update);

#endif
