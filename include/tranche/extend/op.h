// One op: its shape rule, its backward rule as data, and its kernels.
//
// An op is a constant table (`tr_op`). A model's graph holds nodes: each is an op with
// attributes and operands. The graph derives the backward from the rules of its ops. A
// row of another table (tranche/extend/rewrite.h) says which ops replace it in
// evaluation, in inference or in 8 bits. A backend finds the kernel of an op; the op's
// table itself has only the reference, which defines what the op does. The plan asks
// the chosen kernel for its cost and its workspace; the executor only launches it. A
// kernel does not allocate, wait or fail while it is launched: errors belong into
// `supports` or `prepare`. (For libraries that fail see tr_launch.failed.)
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_OP_H
#define TRANCHE_EXTEND_OP_H

#include <tranche/extend/target.h>
#include <tranche/extend/version.h>
#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TR_OP_IN_MAX = 8,
    TR_OP_OUT_MAX = 6,
    TR_OP_ATTR_BYTES = 64,
    TR_OP_RULES_MAX = 6,
    TR_OP_TEMPS_MAX = 3, // of the rules of one op
};

typedef struct tr_op tr_op;

// What a kernel is asked to do. Shapes are concrete (no TR_BATCH).
typedef struct tr_op_desc {
    const tr_op *op;
    TR_ALIGNAS(8) unsigned char attr[TR_OP_ATTR_BYTES]; // the op's own attribute struct
    int in_count, out_count;
    tr_tensor_desc in[TR_OP_IN_MAX];   // dtype TR_NONE: an optional operand left out
    tr_tensor_desc out[TR_OP_OUT_MAX]; // dtype TR_NONE: a result nobody wants
    // Bit i of `fresh`: out[i] may be asked for as `out = ...`; bit i of `accumulate`:
    // as `out += ...`. If both bits are set, each launch decides (weight gradients: the
    // first micro-batch writes, the others add).
    uint32_t fresh, accumulate;
    // Bit i: in[i] is a parameter, or out[i] its gradient, with zeros behind it as
    // tr_kernel.padding asks.
    uint32_t in_padded, out_padded;
    int64_t logits_bytes; // what a kernel that makes logits in chunks may take for one;
                          // 0: as it chooses
    bool f32_logits;      // such logits are f32, whatever type the operands have
    bool fp8_fast; // sums of products of 8 bits may keep fewer bits than f32, in the
                   // forward
    // What the kernel makes of in[0] first is for another launch, too, which follows
    // soon and has the same tensor there (tr_kernel.shares): it is to leave that in its
    // workspace, or finds it in the other's (tr_launch.shared). Never both.
    bool leaves, finds;
    bool inference;   // the plan is one of inference
    bool packs;       // the plan keeps what the kernel packs (tr_kernel.packed)
    tr_target target; // what will launch it
} tr_op_desc;

// What is the same for every op of one unit program's run.
typedef struct tr_run_context {
    uint64_t seed;   // of the run; random draws use base/rng.h, see below
    uint64_t step;   // attempted optimizer step, from 0
    uint64_t sample; // global sample index of the micro-batch's first row
    int64_t rows;    // of the micro-batch that are there; those after them are missing
    uint32_t unit;   // index of the unit in the model
    double place;    // of the launch in the step of all ranks (ops/flat/nonfinite)
    // In an inference with caches (TR_REWRITE_CACHE): the position, in its text, of the
    // first token of each sample. 0 elsewhere.
    int64_t position;
    float loss_seed; // what the loss's backward is multiplied with: scale / 2^k
    // Sums of gradients in fixed point: a term is multiplied by the scale, a power of
    // two, and may then be as large as the limit (ops/accumulate).
    double fixed_scale, fixed_limit;
    const struct tr_update_order *update; // what updates do (ops/update); NULL: none
} tr_run_context;

typedef struct tr_launch {
    const void *in[TR_OP_IN_MAX]; // NULL where absent
    void *out[TR_OP_OUT_MAX];
    uint32_t accumulate; // bit i: out[i] += instead of =
    void *workspace;     // 64-byte aligned, as many bytes as `workspace` said
    void *packed;        // likewise; as many as `packed` said
    bool is_packed;      // an earlier launch has written that, of the same parameter
    const void *shared;  // with desc->finds: the workspace of the launch that leaves
    const tr_run_context *run;
    // On a discrete device: the backend's queue, on which the kernel is put.
    void *queue;
    // If a library that a kernel calls fails during the launch (oneDNN, without memory
    // for its packing buffers), the kernel writes TR_MEMORY or TR_INTERNAL here, and
    // the step ends with it. NULL: the caller does not ask.
    tr_status *failed;
} tr_launch;

typedef struct tr_cost {
    double flops;
    double bytes;    // read and written, each operand once
    double prepare;  // bytes read and written before the arithmetic begins
    double pack;     // the same, where the launch has to write what is packed
    double launches; // of the device's own, beside one
    // Of products of matrices, all of one shape: [rows, columns], over a sum of `depth`
    // terms. 0: there are none, or their shape is not told.
    double rows, columns, depth;
    // Operations as the literature counts those of a model: products alone, and for
    // attention's backward twice those of its forward, over the pairs that are seen.
    // `unseen`: those of the other pairs, which also count if attention is counted in
    // full.
    double model, unseen;
} tr_cost;

// One implementation of one op on one backend. Every function but `launch` and
// `supports` may be NULL (no cost known, no workspace, nothing to prepare).
typedef struct tr_kernel {
    const char *name; // "linear.cpu.avx512"
    bool (*supports)(const tr_op_desc *desc);
    void (*cost)(const tr_op_desc *desc, tr_cost *cost);
    // Plan time. `*state` is the kernel's own, freed by `release`.
    tr_status (*prepare)(const tr_op_desc *desc, void **state, tr_error *err);
    size_t (*workspace)(const tr_op_desc *desc, const void *state); // bytes
    // Once the device is open and before the first launch: readies what a library has
    // to make for this description. TR_USAGE: it is not here, or is another than the
    // plan counts on. May be called again.
    tr_status (*bind)(const tr_op_desc *desc, void *state, tr_error *err);
    // What a person should know of how the kernel works here; dst: [size].
    void (*say)(const tr_op_desc *desc, const void *state, char *dst, size_t size);
    // With desc->packs: the bytes of the op's parameter (tr_op.packed_input) in the
    // kernel's own order or type. Parameters do not change for many micro-batches, so
    // the first launch writes this copy, and later ones read it.
    size_t (*packed)(const tr_op_desc *desc, const void *state);
    void (*launch)(const tr_op_desc *desc, void *state, const tr_launch *launch);
    void (*release)(void *state); // NULL-safe
    // So many elements of zeros the kernel asks for behind input `input` where that is
    // a parameter, and behind its gradient: then products have extents that the device
    // multiplies fast. They are no part of the tensor, and stay zeros: of the gradient
    // the kernel sees to it. Where the plan has none, the kernel does without
    // (desc->in_padded, out_padded). NULL: none.
    int64_t (*padding)(const tr_op_desc *desc, int input);
    // Can `next` work on what `desc` leaves of in[0], which is the same tensor for
    // both? Both are of this kernel. NULL: none can.
    bool (*shares)(const tr_op_desc *desc, const tr_op_desc *next);
} tr_kernel;

// ---- rules as data

// A reference, in an op's rule, to a value of the node that the rule is applied to.
typedef enum tr_ref_kind {
    TR_REF_NONE,     // optional operand left out / result not wanted
    TR_REF_IN,       // the node's input i (its forward value)
    TR_REF_OUT,      // the node's output i (its forward value)
    TR_REF_GRAD_IN,  // gradient of input i: as a result it is added to what is there
    TR_REF_GRAD_OUT, // gradient of output i: complete when read by the first rule; as a
                     // result it is added to (a fused op adds a gradient to one of
                     // its own outputs' before passing it on)
    TR_REF_TEMP, // temporary i of this rule list, written by one rule, read by later
} tr_ref_kind;

typedef struct tr_ref {
    tr_ref_kind kind;
    int index;
} tr_ref;

#define TR_IN(i)                                                                       \
    { TR_REF_IN, (i) }
#define TR_OUT(i)                                                                      \
    { TR_REF_OUT, (i) }
#define TR_GRAD_IN(i)                                                                  \
    { TR_REF_GRAD_IN, (i) }
#define TR_GRAD_OUT(i)                                                                 \
    { TR_REF_GRAD_OUT, (i) }
#define TR_TEMP(i)                                                                     \
    { TR_REF_TEMP, (i) }
#define TR_ABSENT                                                                      \
    { TR_REF_NONE, 0 }

// One op to run in the backward. With op == NULL the rule is a copy of the gradient
// in[0] to out[0] (the graph makes it an alias where it can).
typedef struct tr_rule {
    const tr_op *op;
    tr_ref in[TR_OP_IN_MAX];
    tr_ref out[TR_OP_OUT_MAX];
    TR_ALIGNAS(8) unsigned char attr[TR_OP_ATTR_BYTES]; // the rule op's attributes
    // TR_TEMP(i); dtype TR_NONE: none. Symbolic shapes as the node's. Set on the rule
    // that writes it.
    tr_tensor_desc temp[TR_OP_TEMPS_MAX];
} tr_rule;

// A node as the rules see it; shapes may hold TR_BATCH.
typedef struct tr_op_node {
    const tr_op *op;
    const void *attr;
    int in_count, out_count;
    const tr_tensor_desc *in;
    const tr_tensor_desc *out;
    uint32_t unwanted; // backward: bit i: nobody wants the gradient of input i
} tr_op_node;

// What kind of tensor an op's result is. By these classes a plan chooses what the
// backward recomputes instead of keeping it (tr_plan_request.recomputed_ops).
typedef enum tr_recompute_class {
    TR_RECOMPUTE_NEVER = 0,
    TR_RECOMPUTE_NORM = 1,            // what a normalization gives
    TR_RECOMPUTE_ACTIVATION = 2,      // what an activation function gives
    TR_RECOMPUTE_ATTENTION = 4,       // what attention gives
    TR_RECOMPUTE_RESIDUAL = 8,        // sums of the residual stream, outputs of dropout
    TR_RECOMPUTE_PRE_ACTIVATION = 16, // products that only activation functions read:
                                      // no op says so, it follows from the graph
    TR_RECOMPUTE_PRODUCT = 32,        // products with a weight
    TR_RECOMPUTE_ALL = 63,
    TR_RECOMPUTE_ALWAYS = 64, // never kept: weights made from those in few bits
} tr_recompute_class;

// In how many bits weights that are not trained are kept (base/quantized.h).
typedef enum tr_quantization {
    TR_QUANTIZED_NOT,
    TR_QUANTIZED_NF4,
    TR_QUANTIZED_NF4_DOUBLE,
    TR_QUANTIZED_Q8_0,
} tr_quantization;

enum {
    TR_OP_LOSS = 1, // output 0 is the sums (see below); in training the forward is left
                    // out and the first backward rule computes sums and gradients at
                    // once
    TR_OP_FP8 = 2,  // its arithmetic is on numbers of 8 bits
    // Output 0 becomes, in place, its sum over the ranks of a group of the mesh: the
    // plan exchanges it after the kernel. The attributes begin with the axes of the
    // group (a uint32_t, a bit for each tr_axis). A kernel writes it and never adds to
    // it.
    TR_OP_EXCHANGE = 4,
    // With TR_OP_EXCHANGE, and a group of more than one rank: half of a sum. Either
    // each rank gets its part of the elements' sum, and the rest means nothing; or each
    // has its part, which the kernel writes, and gets those of the others. Parts are
    // runs of elements, in the order of ranks.
    TR_OP_REDUCES = 8,
    TR_OP_GATHERS = 16,
    // Its reference has values or functions of the program's, and puts its work where
    // the operands are: it is the kernel of a discrete device, too.
    TR_OP_CALLS = 32,
};

// ---- how an op is split over ranks

enum { TR_CUT_BLOCKS_MAX = 4 };

// How a tensor is divided among the ranks of a group: cut along one dimension, which
// consists of blocks. Each block is cut into as many parts as there are ranks, and each
// rank has one part of every block, in the order of ranks. Parts differ by one element
// at most, and the first ranks have the larger ones. A block of fewer heads than ranks
// is repeated: it is cut into fewer parts, and ranks that follow each other have one
// part alike. Of the gradient each of them makes a part, which they sum.
typedef struct tr_cut {
    int dim; // -1: every rank has all of the tensor
    // Along the tokens, which are dimension 1, in one block with equal parts. A rank's
    // part is a number of consecutive tokens of the micro-batch in memory, where one
    // sample follows the other. So it is a range of the tensor's elements, and its
    // shape is that of fewer tokens a sample.
    bool tokens;
    // 0: those of the other tensors of the split with 0 here: all of them have the same
    // blocks.
    int blocks;
    int64_t block[TR_CUT_BLOCKS_MAX]; // elements along the dimension; they make it up
    // How many ranks have a part of the block alike, which divides the ranks; 1: each
    // has its own; 0: as other tensors of the same blocks say, or, if none does, 1.
    int64_t repeat[TR_CUT_BLOCKS_MAX];
} tr_cut;

// Elements [first, first + count) of a tensor along its cut.
typedef struct tr_split_range {
    int64_t first, count;
    uint32_t inputs; // bit i: input i is of these elements
} tr_split_range;

// One way in which ranks share the work of a node.
typedef struct tr_split {
    tr_cut in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    uint32_t partial;          // bit i: output i is this rank's part of a sum
    uint32_t partial_gradient; // bit i: so is the gradient of input i, which is whole
    int added; // 1 + the input that is added to output 0, once, behind the sum; 0: none
    TR_ALIGNAS(8) unsigned char attr[TR_OP_ATTR_BYTES]; // of the rank's own node
    // A row of TR_REWRITE_SPLIT (tranche/extend/rewrite.h) writes other nodes in the
    // place of the rank's own: the sum over ranks stands between them.
    bool expands;
    // Ranges of output 0. Each is one of its blocks, or all of it; an input of a range
    // that says one block is as often repeated as the range's. With `place` this has to
    // be so: when it is known how often blocks are repeated, `place` writes into attr
    // where the rank has the elements of range `range`.
    int ranges;
    tr_split_range range[TR_CUT_BLOCKS_MAX];
    void (*place)(void *attr, int range, int64_t first, int64_t count);
    // Bit i: input i is a parameter that other nodes read, too, and are split to cut it
    // along the same dimension: these say its blocks.
    uint32_t follows;
    int taken; // 1 + the input, such a parameter, of which the only range is, in the
               // place of output 0; 0: none
} tr_split;

struct tr_op {
    const char *name;
    size_t attr_bytes; // sizeof its attribute struct, <= TR_OP_ATTR_BYTES
    uint32_t flags;
    uint32_t no_gradient; // bit i: input i never has a gradient (indices, targets)
    uint32_t positions;   // bit i: input i is a batch's positions (TR_ROLE_POSITION)
    uint32_t
        shape_only; // bit i: of input i only the shape is looked at: it may be NULL
    // Bit i: output i is one tensor for the whole wave, to which the op adds for every
    // micro-batch. The first op that reads it begins a new segment. If no op of the
    // unit reads it, it is one tensor for the whole step.
    uint32_t wave_outputs;
    // Bit i: output i is a wave tensor that each rank has for itself. The parts of its
    // own micro-batches are merged, those of other ranks are not. The same holds for
    // its gradient.
    uint32_t rank_outputs;
    // Merges two parts of a wave tensor: `part` into `into`, both of this description.
    // Parts come in the order of their micro-batches. NULL: their sum. (Gradients of
    // wave tensors are always summed.)
    void (*merge)(const tr_tensor_desc *desc, void *into, const void *part);
    // Bit i: input i is read only in training; input i is not read in training.
    uint32_t train_only, evaluate_only;
    // 1 + the input, of the same size, that output 0 may overwrite; 0: none. If nothing
    // reads that input after the op, the plan gives both one place.
    int in_place;
    // 1 + the input that a kernel may pack (tr_kernel.packed) where it is a parameter;
    // 0: none.
    int packed_input;
    // Writes the descriptions of the node's outputs, from those of its inputs.
    // TR_USAGE: shapes or attributes do not fit; the message names them.
    tr_status (*infer)(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err);
    // Writes the rules of the op's backward, in their order, and returns their number.
    // NULL: the op has no backward (backward ops themselves).
    int (*backward)(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]);
    // The class of output i. To recompute an output, the backward runs the op itself
    // once more on the same inputs, or the rule `recompute`.
    tr_recompute_class recompute_class[TR_OP_OUT_MAX];
    // How to recompute outputs with less than all of the op's work: writes one rule
    // over TR_IN and TR_OUT whose results are such outputs. Returns false if this node
    // has none. NULL: no node has one. The rule must give the same bits as the forward.
    bool (*recompute)(const tr_op_node *node, tr_rule *rule);
    // How to update states of the model after a step that was applied: writes a rule
    // that reads wave outputs (TR_OUT) and changes states, which are inputs (TR_IN).
    // Returns false if the node has none. NULL: none.
    bool (*track)(const tr_op_node *node, tr_rule *rule);
    // The ways in which `ranks` ranks can share the node's work, of which this is
    // number `rank`: writes way `way` (0, 1, ...), whose attr is the node's at first.
    // Returns false if there is no such way. NULL: every rank does all of it.
    bool (*split)(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out);
    // The definition of the op in plain C, with sums in double, for any shape. It runs
    // if a backend on the host's memory has no kernel of its own.
    const tr_kernel *reference;
};

// ---- sums of a loss

// A loss op adds to double[TR_SUMS]: the sum of the losses of all targets, the number
// of targets, and the number of targets that have the largest logit. It always adds;
// the plan clears the sums once in an optimizer step. A target below 0 (-100) is no
// target.
enum { TR_SUM_LOSS, TR_SUM_COUNT, TR_SUM_CORRECT, TR_SUMS };

// An op, and the version of the headers that it was compiled with.
typedef struct tr_built_op {
    const tr_op *op;
    int version; // TRANCHE_EXTEND_VERSION
} tr_built_op;

#ifdef __cplusplus
}
#endif
#endif
