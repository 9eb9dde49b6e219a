// Rotary position embeddings: what is turned, and how fast.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_ROPE_H
#define TRANCHE_EXTEND_ROPE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// How frequencies are changed for contexts beyond the original one.
typedef enum tr_rope_scaling {
    TR_ROPE_DEFAULT, // they are not
    TR_ROPE_LINEAR,  // by one factor
    TR_ROPE_LLAMA3,  // by a factor for the long waves alone
    TR_ROPE_YARN,    // by parts, and with a factor on what is turned
} tr_rope_scaling;

typedef struct tr_rope_options {
    int heads, head_dim; // what is turned: the first heads * head_dim elements of a row
    int kv_heads;        // how many of these, the last ones, are keys'; 0: none
    double theta;        // base of the frequencies: 10000
    tr_rope_scaling scaling;
    // What follows: where it is not the default.
    float factor;    // of the context
    float low, high; // llama3: low_freq_factor and high_freq_factor; yarn: beta_slow
                     // and beta_fast
    float attention; // yarn: attention_factor
    int original;    // original_max_position_embeddings
    bool truncate;   // yarn: limits are whole pairs
} tr_rope_options;

#ifdef __cplusplus
}
#endif
#endif
