// The version of the headers in tranche/extend, for what is compiled with them. Their
// structs may change with every version of the library, so an op, or a model's
// rewrites, that were compiled with those of another one are refused where they are
// handed over.
#ifndef TRANCHE_EXTEND_VERSION_H
#define TRANCHE_EXTEND_VERSION_H

#include <tranche/version.h>

#define TRANCHE_EXTEND_VERSION TRANCHE_VERSION_NUMBER

#endif
