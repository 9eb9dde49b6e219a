// A unit built by a test, and the backward that is derived from it.
#ifndef TEST_GRAPH_DERIVED_UNIT_H
#define TEST_GRAPH_DERIVED_UNIT_H

#include "graph/describe.h"

enum { WIDTH = 6 };

extern const tr_init zeros;

typedef void (*builder)(tr_graph *graph);

// A unit that is given `given` tensors [B, WIDTH], and its derivation.
typedef struct derived_unit {
    tr_graph *graph;
    tr_derivation derived;
    tr_error err;
    tr_status status;
    char text[TEST_TEXT];
} derived_unit;

void make_as_asked(derived_unit *unit, builder build, int given,
                   tr_derive_request request);
// Norms and activations are recomputed.
void make(derived_unit *unit, builder build, int given);
void clear(derived_unit *unit);
// As `make` makes it: its calls, and what it saves and recomputes (describe.h).
void assert_backward(builder build, int given, const char *calls, const char *saved,
                     const char *recomputed, bool in_place);

// The first tensor that is given; parameters; layers.
tr_value x0(tr_graph *g);
tr_value weight(tr_graph *g, const char *name);
tr_value vector(tr_graph *g, const char *name);
tr_value project(tr_graph *g, tr_value x, const char *name);
tr_value norm(tr_graph *g, tr_value x, const char *name_a, const char *name_b);

#endif
