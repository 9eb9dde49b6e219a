// What is printed to one of C's streams, handed on to the caller's sink.
#ifndef TR_BASE_SINK_H
#define TR_BASE_SINK_H

#include <tranche/status.h>
#include <tranche/types.h>

#include <stdio.h>

// Prints `what` to the sink by `print`. TR_USAGE: one of them is NULL, or the sink has
// no function. TR_IO: the sink takes no more. TR_MEMORY, and the errors of `print`.
// function: the public one that is called.
tr_status tr__sink_print(const tr_sink *to, const char *function,
                         tr_status (*print)(const void *what, FILE *to, tr_error *err),
                         const void *what, tr_error *err);

#endif
