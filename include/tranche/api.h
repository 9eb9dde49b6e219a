// Which functions a shared library exports: those whose declaration begins with TR_API.
#ifndef TRANCHE_API_H
#define TRANCHE_API_H

#if defined(__GNUC__)
#define TR_API __attribute__((visibility("default")))
#else
#define TR_API
#endif

#endif
