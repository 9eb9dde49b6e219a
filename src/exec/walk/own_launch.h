// Launches of a program's own ops under AddressSanitizer.
#ifndef TR_EXEC_WALK_OWN_LAUNCH_H
#define TR_EXEC_WALK_OWN_LAUNCH_H

#include "backend/backend.h"
#include "base/poison.h"

// Operands lie side by side in their unit's block, so AddressSanitizer does not see a
// kernel that goes on behind one. So the kernel of an op that is not the library's
// works on copies, with bytes around them that nobody may touch. (The library's kernels
// are tested on such operands.) Returns false where there is no memory for copies, and
// without AddressSanitizer: then nothing has been done.
bool tr__launch_own_apart(const tr_backend *backend, const tr_device_work *work);

#endif
