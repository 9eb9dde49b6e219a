// Bytes that nobody may touch. AddressSanitizer ends a process that does; without it
// nothing is marked.
#ifndef TR_BASE_POISON_H
#define TR_BASE_POISON_H

#if defined(__has_feature) // clang
#if __has_feature(address_sanitizer)
#define TR_POISONS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) // GCC
#define TR_POISONS
#endif

#ifdef TR_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)   ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

#endif
