// The request for a plan, and what a plan may recompute.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_PLAN_H
#define TRANCHE_EXTEND_PLAN_H

#include <tranche/extend/mesh.h>
#include <tranche/extend/op.h>
#include <tranche/extend/state.h>
#include <tranche/model.h>
#include <tranche/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// Values of tr_plan_request.recomputed_ops beside bits of tr_recompute_class.
#define TR_RECOMPUTE_DEFAULT ((uint32_t)(TR_RECOMPUTE_NORM | TR_RECOMPUTE_ACTIVATION))
#define TR_RECOMPUTE_NOTHING (UINT32_C(1) << 31)

// Whether a step measures the gradient noise scale. This reads the gradients of each
// rank's first micro-batch once more.
typedef enum tr_measure {
    TR_MEASURE_NEVER,
    TR_MEASURE_CHEAP, // where that is about a hundredth of the step's time or less
    TR_MEASURE_ALWAYS
} tr_measure;

// Products of 8 bits in the linear layers of a model's blocks. Blocks are the units
// with linear layers, the head left out. Operands are rounded to E4M3, and gradients in
// the backward to E5M2, with a power of two as the scale of each tensor, which follows
// from the tensor's largest absolute value. They are summed in f32. All else stays as
// in bf16.
typedef struct tr_plan_fp8 {
    bool enabled; // only with compute bf16
    // The first and the last so many blocks multiply in bf16.
    int64_t first_blocks_bf16, last_blocks_bf16;
    // Weights are rounded for every micro-batch. Otherwise the rounded weights are kept
    // for all micro-batches of the step, or of a wave if weights are gathered or
    // fetched.
    bool repack;
    // On a GPU, forwards leave the sums of their products to its tensor cores, which
    // are faster and keep fewer bits of them than f32 has.
    bool fast;
} tr_plan_fp8;

// In which order stages of a pipeline take waves of micro-batches
// (docs/parallelism.md).
typedef enum tr_pipeline_order {
    TR_PIPELINE_1F1B,
    TR_PIPELINE_INTERLEAVED,
    TR_PIPELINE_BREADTH_FIRST,
    TR_PIPELINE_ZERO_BUBBLE,
    TR_PIPELINE_V
} tr_pipeline_order;

// How ranks exchange what all of them need (docs/distributed.md).
typedef enum tr_exchange_algorithm {
    TR_EXCHANGE_AUTO,         // the plan chooses, exchange by exchange
    TR_EXCHANGE_DIRECT,       // each rank with every other
    TR_EXCHANGE_HIERARCHICAL, // on a node, then once between nodes
    TR_EXCHANGE_RING,         // from each rank to the next one, around a ring
    TR_EXCHANGE_TREE,         // in few rounds, of messages that double
    TR_EXCHANGE_ALGORITHMS
} tr_exchange_algorithm;

enum { TR_ALTERNATING_MOST = 4 }; // micro-batches that take turns

// What one rank sends, and at the same time receives, when all ranks do. Messages of b
// bytes get b / (b + half) of the rate. rate 0: not known.
typedef struct tr_link_figures {
    double rate;    // bytes a second
    double half;    // bytes
    double latency; // seconds of a message
} tr_link_figures;

// A plan is a function of this request alone. Counts are in samples.
typedef struct tr_plan_request {
    const tr_model *model;      // must outlive the plan
    int64_t train_batch_size;   // T
    int64_t micro_batch;        // m
    int64_t accumulation_steps; // g
    tr_mesh mesh;               // of the rank whose plan this is
    // Ranks of the tensor axis do not share the work of layers: all of them do all of
    // it.
    bool tensor_ranks_alike;
    // Parts of the model that each stage of the pipeline runs; 0: 1. Several with
    // TR_PIPELINE_INTERLEAVED, two with TR_PIPELINE_V, one with TR_PIPELINE_1F1B and
    // TR_PIPELINE_ZERO_BUBBLE, any number with TR_PIPELINE_BREADTH_FIRST.
    int64_t virtual_stages;
    tr_pipeline_order pipeline_order;
    // The ops between the layers' products are cut along the tokens over the ranks of
    // the tensor axis (sequence parallelism: Korthikanti et al., arXiv 2205.05198).
    // Otherwise each rank computes all of them. No effect with one such rank, or in an
    // inference.
    bool sequence_parallel;
    int64_t wave; // 1..g; 0: 1, or g if an op needs the whole wave
    // So many micro-batches of a wave, at most, take turns at a unit inside of which
    // ranks exchange: while one exchanges, the others compute. What such a unit
    // recomputes is there for each of them. 1: none do. 0: TR_ALTERNATING_MOST.
    int alternating;
    // How often the units below the last one run forward, if the last unit alone has an
    // op over all micro-batches of the step. With 2, the first forward keeps only what
    // that op needs. The second one runs wave by wave, before each backward. In other
    // models, and for 0, it is 1.
    int passes;
    int stage; // ZeRO stage 0..3
    // Where the optimizer's state lives. The master copy of parameters is there, too,
    // if the device has only a copy. If this is not the device, the host runs the
    // update.
    tr_space optimizer_placement;
    // The share of the parameters, from 0 to below 1, whose state and update stay on
    // the device in spite of that. Whole flat buffers stay: those that the forward uses
    // first, and at most this share of all. Must be 0 if anything is on NVMe.
    double optimizer_stays;
    // Where parameters live. If this is not the device, units are fetched for use. An
    // optimizer on the device reads and writes them there. In 16 bits their f32 masters
    // are there, too.
    tr_space param_placement;
    // Where complete gradients wait for the update: in the same space as the update
    // (give TR_SPACE_DEVICE: the plan chooses), or on NVMe, if the optimizer's state is
    // there, too.
    tr_space grad_placement;
    // How many elements of a flat buffer an update that reads from NVMe takes at a time
    // (a multiple of 1,024), and how many such pieces are staged. 0: the plan chooses.
    int64_t update_elements;
    int update_slots;
    int64_t recomputed_units; // the first this many units are recomputed; -1: all
                              // but the last
    // Classes of tensors (bits of tr_recompute_class) that the other units do not keep,
    // but recompute right before their backward needs them. 0: TR_RECOMPUTE_DEFAULT.
    // TR_RECOMPUTE_NOTHING: units keep everything.
    uint32_t recomputed_ops;
    int64_t recomputed_ops_units; // only in the first this many units, and
                                  // TR_RECOMPUTE_DEFAULT in the others; 0: in all
    // Where the inputs of recomputed units wait between forward and backward.
    tr_space boundary_placement;
    // Where saved activations of the other units wait between forward and backward.
    tr_space saved_placement;
    // The optimizer's states of each trained parameter: [optimizer_states] rows. A row
    // of zeros has no name and is f32.
    int optimizer_states;
    tr_optimizer_state states[TR_STATE_ROWS];
    // The states of parameters that are kept apart: [apart_state_count] rows.
    tr_apart apart;
    int apart_state_count;
    tr_optimizer_state apart_states[TR_STATE_ROWS];
    // With TR_APART_NO_MATRIX: [apart_rule_count]; they must outlive the plan.
    const tr_apart_rule *apart_rules;
    size_t apart_rule_count;
    bool matrices; // the update needs whole matrices of the other parameters (Muon)
    // Parameters that are not trained (frozen): patterns (* and ?) of their names in
    // files, [frozen_count]. The patterns must outlive the plan. Frozen parameters have
    // no gradient, no state and no update. A pattern may match nothing, but together
    // they must not match every parameter.
    const char *const *frozen;
    size_t frozen_count;
    // Exceptions from these, which are trained (adapters): patterns, NULL at the end.
    // NULL: none.
    const char *const *unfrozen;
    // Only in 16 bits. true: the values of frozen parameters are exact in the type
    // `compute`, and the plan keeps them in that type alone. false: it also keeps f32
    // masters, so no value loses precision.
    bool frozen_half;
    // With frozen_half: values that the type does not hold exactly are rounded to it
    // when they are set. Else they are an error.
    bool frozen_rounds;
    // In how many bits the weights of linear layers that match `frozen` are kept,
    // except those of the last unit. Each product dequantizes its weight, and no f32
    // values are kept. An inference keeps the same weights in this way.
    tr_quantization quantization;
    tr_dtype compute; // of weights, activations and their gradients: f32 (also
                      // TR_NONE), bf16 or f16. The weights that the update changes
                      // and optimizer state are f32
    tr_plan_fp8 fp8;
    // In bf16, logits of a vocabulary are f32 on a GPU, too. On a CPU they always are.
    bool f32_logits;
    // MiB of logits that a GPU makes at once. 0: the kernel chooses.
    int64_t logits_mib;
    // A step in parts hands its outputs out where the device has them, and takes their
    // gradients there. Else both are copied by way of the host. Without a discrete
    // device it changes nothing.
    bool parts_on_device;
    bool own_rows;      // the run has no data: micro-batches are the caller's. With
                        // parts_on_device they lie on the device, too
    tr_dtype sums;      // of gradients, over micro-batches and ranks: f32 (also
                        // TR_NONE), bf16 or f16; 64-bit integers, whose scale each
                        // step sets, where the run is reproducible
    bool tensor_norms;  // the update needs the norms of each tensor (LAMB, LARS)
    tr_measure measure; // of a plan: NEVER or ALWAYS
    bool no_overlap;    // ranks compute nothing while they communicate
    bool reproducible;  // gradients are summed in fixed point: the same bits for
                        // every W, g, wave and stage
    bool inference;     // forward only, of one micro-batch. It gives logits:
    bool all_positions; // the logits of every position, not of each sample's last
    // Inference: the number of positions of a text whose keys and values attention
    // keeps from one call to the next. A sample's positions come after those that are
    // kept. 0: nothing is kept.
    int64_t cache_positions;
    // The largest number of positions that a plan which shares the cache computes at
    // once. 0: that of this plan.
    int64_t cache_piece;
    int64_t host_data_bytes; // held by the data sets in memory: in the ledger
    int64_t process_bytes;   // that the process takes beside the plan, for budgets; 0:
                             // TR_PROCESS_BYTES
    // true: the device works beside the thread that issues steps, on a compute queue of
    // its own, as a GPU does, and steps that need its results wait for them. It has its
    // own memory and reaches the host's. false: each step on the device is done when
    // the next one is issued.
    bool discrete;
    tr_backend_id backend; // whose kernels compute
    int device;            // on which of its devices, from 0
    // The ranks' devices, which are discrete, exchange by themselves, in a queue of
    // theirs.
    bool peers;
    // Ranks on each node, with consecutive numbers. Messages between nodes are slow. 0:
    // all are on one node.
    int64_t node_ranks;
    // Groups of ranks with equal numbers on several nodes exchange on their nodes
    // first, and then once between nodes. Otherwise every member exchanges with every
    // other. Reproducible runs do not make floating-point sums of ranks in this way.
    bool hierarchical;
    // AUTO: each exchange takes what is fastest by `links`, or, where these are not
    // known, what `hierarchical` says. Otherwise all take this one, except those for
    // which it is not possible. Reproducible runs make floating-point sums directly.
    tr_exchange_algorithm algorithm;
    // Bytes of a reduction that are under way at once, for which there is memory. 0:
    // 1 MiB. tr_comm_create_callback's ranks, whose messages block, exchange more.
    int64_t reduced_at_once;
    tr_link_figures inside, between; // on a node, between nodes
    // One rank of a node that sends alone gets what all of them get together.
    bool shared_between;
    // planned for another machine, and not to be run: it may have what the backend
    // cannot run yet
    bool elsewhere;
    int threads;     // workers of the backend; 0: those of the machine
    int level_limit; // 0: no limit; else 1 + the best level (tr_target) to use
    // Where attention is taken from a library (tr_target.attention): its version; 0: of
    // the one that is installed, if any; -1: from none. Reproducible runs take it from
    // none. A plan has what it has come to.
    int attention;
    bool reference_kernels; // only the plain ones: slow, for tests
} tr_plan_request;

// Makes the plan, which depends on the request alone. Allocates no tensor memory. The
// caller destroys *out. Not collective. TR_USAGE: the request is not possible.
// TR_MEMORY.
TR_API tr_status tr_plan_make(const tr_plan_request *request, tr_plan **out,
                              tr_error *err);

TR_API const char *
tr_recompute_name(tr_recompute_class one); // of one class, "norm"; "" for others

// A choice of what units recompute in their backwards.
typedef struct tr_recompute_choice {
    uint32_t ops;   // tr_plan_request.recomputed_ops
    bool units;     // and all units that can be are recomputed from their input
    int64_t kept;   // bytes that forwards keep for backwards, of one micro-batch in all
                    // units; the boundaries between units are not of them
    double flops;   // to recompute the rest, of one micro-batch in all units
    double traffic; // bytes read and written while doing so
} tr_recompute_choice;

enum { TR_RECOMPUTE_CHOICES_MAX = 8 };

// The useful choices for the plan's model and micro-batch, whatever the plan itself
// recomputes. The first keeps everything. Each further one adds the class of tensors
// that saves the most bytes per flop. Whole units come last. TR_MEMORY; TR_USAGE: the
// plan has no backward.
TR_API tr_status tr_plan_recompute_choices(
    const tr_plan *plan, tr_recompute_choice out[TR_RECOMPUTE_CHOICES_MAX], int *count,
    tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
