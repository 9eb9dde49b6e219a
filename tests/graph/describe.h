// A derived backward as text, so that a test reads like the derivation.
#ifndef TEST_GRAPH_DESCRIBE_H
#define TEST_GRAPH_DESCRIBE_H

#include "graph/derive.h"

enum { TEST_TEXT = 4096 };

// The calls, one a line: "op(inputs -> results)". Values: i0 handed in, x and t the
// data, p0 a parameter, n2 (n2.1) an output of node 2, dn2 its gradient, with ' for a
// second storage; t0 a temporary. "+n" is added to, "?n" when not the first.
const char *test_describe(const tr_graph *graph, const tr_derivation *derived,
                          char *text);
// The forward values with that flag, as above, with spaces between.
const char *test_describe_values(const tr_graph *graph, const bool *flags, char *text);

#endif
