// Included before every source that tools/tidy.sh looks at: clang's analyzer sees one
// file at a time, and these functions return the status of an error that they are given.
#ifndef TR_TOOLS_TIDY_H
#define TR_TOOLS_TIDY_H

#include "comm/alone.h"

#include <tranche/status.h>

#define tr_fail(err, status, ...) ((tr_fail)(err, status, __VA_ARGS__), status)
#define tr__agree(comm, status, mine, err)                                             \
    ((status) != TR_OK ? (status) : (tr__agree)(comm, status, mine, err))

#endif
