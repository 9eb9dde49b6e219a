// Several errors as one: what is found while the search goes on, told together.
#ifndef TR_BASE_PROBLEMS_H
#define TR_BASE_PROBLEMS_H

#include <tranche/status.h>

#include <stddef.h>

enum { TR_PROBLEMS_MAX = 20 }; // that are told; of the others the number

// Zero-initialize it.
typedef struct tr_problems {
    tr_status status; // of the first problem; TR_OK: there is none
    size_t count, told;
    size_t used; // characters of `text`
    char text[TR_MESSAGE_MAX];
} tr_problems;

// Keeps a copy of the message. An error of TR_OK is none.
void tr__problems_add(tr_problems *problems, const tr_error *err);
// TR_OK where there is none; else all of them, with the first one's status. Several
// have a line each.
tr_status tr__problems_end(const tr_problems *problems, tr_error *err);

#endif
