// What public functions ask of what they are handed: no NULL, structs of a known size.
#ifndef TR_BASE_ARGUMENTS_H
#define TR_BASE_ARGUMENTS_H

#include <tranche/status.h>

#include <stddef.h>

// TR_USAGE: the argument `name` of the public function is NULL.
tr_status tr__need(const void *argument, const char *function, const char *name,
                   tr_error *err);

// A public struct, which begins with its size.
typedef struct tr_sized {
    const char *type;  // "tr_run_parts"
    const char *macro; // that fills it: "TR_RUN_PARTS_INIT"
    size_t size;       // that this version knows
    size_t least;      // that of the first version which had it; 0: it never grew
} tr_sized;

// TR_USAGE: the struct is NULL, or its size is none that this version knows.
tr_status tr__need_sized(const void *argument, const tr_sized *known,
                         const char *function, tr_error *err);

// Copies a struct of this version's to the caller's, which tr__need_sized has passed:
// as many bytes as the caller's says, which keeps its size.
void tr__give_sized(void *to, const void *from);

#endif
