// What a machine can do, as a machine file says it (docs/simulate.md).
#ifndef TR_SIM_MACHINE_H
#define TR_SIM_MACHINE_H

#include "sim/reached.h"

#include <tranche/extend/plan.h>

#include <stdio.h>

// The ops whose rates a machine file may give, by their own names.
// X(name)
#define TR_RATED_OP_LIST(X)                                                            \
    X(attention)                                                                       \
    X(attention_backward)                                                              \
    X(copy)                                                                            \
    X(dropout)                                                                         \
    X(embedding)                                                                       \
    X(embedding_backward)                                                              \
    X(gelu)                                                                            \
    X(gelu_backward)                                                                   \
    X(head)                                                                            \
    X(head_backward)                                                                   \
    X(head_slice)                                                                      \
    X(head_slice_backward)                                                             \
    X(head_slice_loss)                                                                 \
    X(head_slice_loss_backward)                                                        \
    X(layer_norm)                                                                      \
    X(layer_norm_backward)                                                             \
    X(residual_norm)                                                                   \
    X(linear)                                                                          \
    X(linear_backward_input)                                                           \
    X(linear_backward_weight)                                                          \
    X(linear_fp8)                                                                      \
    X(linear_fp8_backward_input)                                                       \
    X(linear_fp8_backward_weight)                                                      \
    X(relu)                                                                            \
    X(relu_backward)                                                                   \
    X(residual)

typedef enum tr_rated_op {
#define TR_RATED_OP_ENUM(name) TR_RATED_##name,
    TR_RATED_OP_LIST(TR_RATED_OP_ENUM)
#undef TR_RATED_OP_ENUM
        TR_RATED_OPS
} tr_rated_op;

// How ranks exchange what all of them need: a tr_exchange_algorithm, of which AUTO is
// as the plan has it; or by a library of collectives.
typedef int tr_exchange_method;
enum { TR_EXCHANGE_NCCL = TR_EXCHANGE_ALGORITHMS, TR_EXCHANGE_METHODS };

#define TR_INTERFERENCE_MOST 0.9 // of what one thing may take from another

// Rates are for one rank when all work, but for `shared` ones.
struct tr_machine {
    char *name;
    char *fingerprint; // of what was measured; NULL: none
    // What plans for it are made for, as in their request. 0: not said.
    tr_backend_id backend;
    bool says_backend; // or a level of it
    int level_limit, workers;
    int64_t ranks_per_node;
    bool shared;        // compute and device memory are a node's, not a rank's
    double flops;       // a second, of matrix products in f32
    double half_flops;  // in bf16 or f16
    double fp8_flops;   // of operands of 8 bits
    double memory_rate; // bytes a second
    double power;       // watts that a rank may draw; 0: those of the data sheet
    // What passes between kernels, and is no larger, moves at cache_rate. 0: no cache.
    double cache_bytes;
    double cache_rate;             // bytes a second
    double launch;                 // seconds, of each kernel
    double op_flops[TR_RATED_OPS]; // a second; 0: as `flops`
    // Seconds that each kernel of an op takes besides `launch`; negative: not said. An
    // op that has this and a rate was measured: its time at memory is in them.
    double op_launch[TR_RATED_OPS];
    struct {
        double rate;    // bytes a second; 0: there is no such way
        double latency; // seconds
    } way[TR_WAYS];
    tr_exchange_method exchange;
    bool shared_between; // as in the request
    double host_rate;    // bytes a second of a node's host memory; 0: not said
    // The host's processors are the device: what is of the host's stream is then worked
    // off in the order of the compute stream.
    bool host_is_device;
    // The part of their speed that computing and messages take from each other: 0 where
    // they have hardware of their own, 0.5 where they share the same cores. The same of
    // computing and copies, and of computing and NVMe.
    double link_interference, copy_interference, nvme_interference;
    tr_reached reached;          // of the rates above and below
    int64_t capacity[TR_SPACES]; // bytes; device: of a rank, others: of a node; 0: not
                                 // said
};

// tr_machine_open of text in memory; `name` stands for the file in messages.
tr_status tr__machine_parse(const char *name, const char *text, tr_machine **out,
                            tr_error *err);
// Writes the machine as a file that tr_machine_open reads. `sources`: [count] texts,
// where its figures are from. TR_IO.
tr_status tr__machine_print(const tr_machine *machine, const char *const *sources,
                            size_t count, FILE *to, tr_error *err);
// Matrix products a second of one rank in that type.
double tr__machine_flops(const tr_machine *machine, tr_dtype compute);
// The links, for the request of a plan (sim/cost.c).
void tr__machine_links(const tr_machine *machine, tr_plan_request *request);
const char *tr__rated_op_name(tr_rated_op op);
const char *tr__exchange_name(tr_exchange_method method); // "direct"
// The op of that name; TR_RATED_OPS: none of them.
tr_rated_op tr__rated_op_find(const char *name);

#endif
