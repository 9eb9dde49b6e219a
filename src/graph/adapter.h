// Adapters beside linear layers: LoRA (Hu et al., arXiv 2106.09685), as PEFT has them.
//
//     y = W x + b + scale * B A dropout(x)    A [rank, in], B [out, rank]
//
// With magnitudes, DoRA (Liu et al., arXiv 2402.09353):
//
//     y = m / n (W x + scale * B A dropout(x)) + b    m, n [out]
//
// where n are the lengths of the rows of W + scale * B A, and no gradient goes through
// them.
//
// They are a rewrite (graph/rewrites/adapter.c): models and kernels know of none.
#ifndef TR_GRAPH_ADAPTER_H
#define TR_GRAPH_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>

// What a linear layer's name ends with in place of "weight".
#define TR_LORA_A "lora_A.weight"
#define TR_LORA_B "lora_B.weight"
#define TR_DORA_M "lora_magnitude_vector"

typedef struct tr_adapter {
    int64_t rank;
    float scale;   // alpha / rank, or alpha / sqrt(rank)
    float dropout; // of the layer's input, on its way to A
    bool magnitudes;
    // Has the layer an adapter? module: its name, "model.layers.0.self_attn.q_proj".
    bool (*adapts)(const struct tr_adapter *adapter, const char *module);
} tr_adapter;

// Is it the name of an adapter's tensor, as files without PEFT's prefix have it?
bool tr__is_adapter_tensor(const char *name);

#endif
