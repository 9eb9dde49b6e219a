// The library's version. Before 1.0 the interface may change with the minor version.
#ifndef TRANCHE_VERSION_H
#define TRANCHE_VERSION_H

#include <tranche/api.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of these headers: what the program is compiled for. The build reads the numbers here.
#define TRANCHE_VERSION_MAJOR 0
#define TRANCHE_VERSION_MINOR 1
#define TRANCHE_VERSION_PATCH 0

#define TR_VERSION_WORD(number) #number
#define TR_VERSION_WORDS(major, minor, patch)                                          \
    TR_VERSION_WORD(major) "." TR_VERSION_WORD(minor) "." TR_VERSION_WORD(patch)
// "0.1.0"
#define TRANCHE_VERSION                                                                \
    TR_VERSION_WORDS(TRANCHE_VERSION_MAJOR, TRANCHE_VERSION_MINOR,                     \
                     TRANCHE_VERSION_PATCH)
// One number that grows with the version, for #if: 0.1.0 is 1000.
#define TRANCHE_VERSION_NUMBER                                                         \
    (TRANCHE_VERSION_MAJOR * 1000000 + TRANCHE_VERSION_MINOR * 1000 +                  \
     TRANCHE_VERSION_PATCH)

// TRANCHE_VERSION of the library that the program runs with. A constant text.
TR_API const char *tr_version(void);
// TRANCHE_VERSION_NUMBER of that library.
TR_API int tr_version_number(void);

#ifdef __cplusplus
}
#endif
#endif
