// Scales of 8 bits that are one for all ranks of a group: those of tensors of which
// each rank has a part.
#ifndef TR_GRAPH_SCALES_H
#define TR_GRAPH_SCALES_H

#include "graph/rewrite.h"

// Behind the rewrite into 8 bits: products with a factor of which this rank has a part
// take the scale of the whole tensor. So the largest values of the parts are found and
// gathered between the ranks (walk->ranks, rank, axes): those of the weights of a
// segment together, before its first product; one of x before the product; and one of
// the gradient of y in the backward. The error is the graph's.
tr_status tr__graph_share_scales(tr_graph *graph, const tr_rewrite_walk *walk,
                                 tr_error *err);

#endif
