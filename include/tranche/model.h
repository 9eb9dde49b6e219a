// A model: a list of units, each a function that builds its graph as if for one
// micro-batch on one device.
//
// After a graph's first error, every function except tr_graph_status returns at once,
// with TR_NO_VALUE. So the model's code needs no checks, and the caller asks for the
// error once, at the end. tr_value is an index that is valid in its own graph only.
// Nothing here is collective.
#ifndef TRANCHE_MODEL_H
#define TRANCHE_MODEL_H

#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_graph tr_graph;
typedef int32_t tr_value;
#define TR_NO_VALUE ((tr_value)-1)

// How a parameter is drawn before training.
typedef enum tr_init_kind {
    TR_INIT_CONSTANT, // a everywhere
    TR_INIT_NORMAL,   // mean a, standard deviation b
    TR_INIT_UNIFORM,  // [a, b)
} tr_init_kind;

typedef struct tr_init {
    tr_init_kind kind;
    float a, b;
} tr_init;

// ---- what comes in and goes out

// The tensor that the unit before gave to its tr_graph_output number `index`.
TR_API tr_value tr_graph_input(tr_graph *graph, int index);
// The tensor of the batch with this name in the model's list (tr_model.batch): its
// first dimension is TR_BATCH, the others are the sample's. F32 inputs become the type
// that the run computes in; targets stay F32.
TR_API tr_value tr_graph_data(tr_graph *graph, const char *name);
// A parameter of this unit, of the type that the run computes in. Its full name is the
// unit's prefix and `name`.
TR_API tr_value tr_graph_param(tr_graph *graph, const char *name, tr_shape shape,
                               tr_init init);
// A parameter that several units use (tied weights). `name` is the full name. The
// `init` of its first user is used.
TR_API tr_value tr_graph_shared(tr_graph *graph, const char *name, tr_shape shape,
                                tr_init init);
// The same for rows [first, first + rows) of a tied tensor of `shape` that is used in
// slices. Each slice is a parameter with a flat buffer of its own; folders and
// checkpoints have the one tensor. Together the slices must be the whole tensor.
TR_API tr_value tr_graph_shared_rows(tr_graph *graph, const char *name, tr_shape shape,
                                     int64_t first, int64_t rows, tr_init init);
// Several parameters of this unit that lie one after the other as rows of one tensor.
// One product then does the work of several, while folders and checkpoints have each
// parameter under its own name. `shape` is that of the whole tensor; the rows of the
// parts add up to its first dimension.
typedef struct tr_param_rows {
    const char *name; // completed by the unit's prefix
    int64_t rows;
} tr_param_rows;
TR_API tr_value tr_graph_stacked(tr_graph *graph, const tr_param_rows *parts, int count,
                                 tr_shape shape, tr_init init);
// Values that nothing trains or saves: a mask, a table of positions. values: [elements
// of desc], F32 or I32 as desc says. They are not copied: they must outlive the run and
// must not change. F32 values become the type that the run computes in. If the first
// dimension is TR_BATCH, the values are one sample's and are repeated for each sample.
// The plan treats them as results of an op, and copies them as often as it needs them.
// The host copies them: a plan on another device has no kernel for them. TR_USAGE, as
// the graph's error: another type, a dimension below 1, or NULL.
TR_API tr_value tr_graph_constant(tr_graph *graph, tr_tensor_desc desc,
                                  const void *values);
// A state of this unit: a tensor that lives from step to step and is not a parameter,
// such as a running mean. Ops write it after each step that is applied (tr_op.track)
// and read it outside of training. It is the same on all ranks. F32 or I64; `value` is
// its first value everywhere.
TR_API tr_value tr_graph_state(tr_graph *graph, const char *name, tr_tensor_desc desc,
                               float value);
// Begins a new segment of the unit with the next op. Segments use different parameters,
// which need not be in memory at the same time.
TR_API void tr_graph_segment(tr_graph *graph);
// Makes `value` an input of the next unit, or in the last unit an output of the model.
// The first call makes input 0, the next input 1, and so on.
TR_API void tr_graph_output(tr_graph *graph, tr_value value);

// ---- ops

// Adds an op by its name ("linear"). All ops below may be called so; bindings of other
// languages need this. attributes: a JSON object ({"form": "in_out"}); NULL: none.
// inputs: [input_count], TR_NO_VALUE for one that is left out, as are those after the
// last. outputs: [output_count], gets the first results; may be NULL. Returns result 0,
// TR_NO_VALUE of a loss. docs/library.md lists names, inputs and attributes. An unknown
// name, an attribute or an input that does not fit becomes the graph's error, TR_USAGE,
// and the message says what there is.
TR_API tr_value tr_graph_call(tr_graph *graph, const char *op, const char *attributes,
                              const tr_value *inputs, int input_count,
                              tr_value *outputs, int output_count);

// ---- functions of the caller's as ops

enum { TR_FUNCTION_INPUTS = 6 };

// What a function is called with. Pointers are to memory of the plan and valid during
// the call. Shapes have the rows of the micro-batch in the place of TR_BATCH. Numbers
// are F32, even if the run computes in 16 bits, but those of a function with
// `on_device` are of the type that the run computes in. Ids are I32.
typedef struct tr_function_call {
    size_t size;  // of this struct
    int64_t rows; // of the micro-batch that are there; those after them are missing
    int input_count;
    tr_tensor_desc input_desc[TR_FUNCTION_INPUTS], output_desc;
    const void *input[TR_FUNCTION_INPUTS]; // NULL: left out
    void *output; // written whole; a loss adds to it. NULL in `backward` of others
    // Of `backward`: the gradient of the output (a loss has none), and where the
    // gradient of each input goes; NULL: it is not needed. If bit i of `adds` is set,
    // that of input i is added to the values there; otherwise it is written whole.
    const void *output_gradient;
    void *input_gradient[TR_FUNCTION_INPUTS];
    tr_dtype input_gradient_dtype[TR_FUNCTION_INPUTS]; // TR_F32
    uint32_t adds;
    float loss_seed; // gradients of a loss are multiplied by this
    // Of a function with `on_device`: the CUDA stream that its work belongs on, one of
    // the engine's in the primary context of the device. Pointers are then to memory of
    // the device, and of the host where the device reaches it: the sums of a loss, and
    // what comes of the batch. Work on the stream finds there what was computed before,
    // and what it writes is there for what comes later.
    void *stream;
} tr_function_call;

// A function of the caller's and its vector-Jacobian product, for inputs of the shapes
// that the graph has. The function computes each sample from that sample alone. Both
// return false if they fail: the step then ends with TR_DATA and changes nothing. They
// are called on the thread that is in the engine, as often as the plan says, and must
// give the same results for the same inputs. They run on the host, and a plan on
// another device has no kernel for them, unless they say `on_device`. Begin with
// TR_FUNCTION_INIT, then set members.
//
// The output of a loss (`loss`) is double[3]. The function adds to it the sum of the
// losses of all targets, the number of targets, and how many of these the best guess
// got right. In training only `backward` is called, and it adds them, too. Its
// gradients are those of the sum of the losses.
typedef struct tr_function {
    size_t size;           // of this struct
    const char *name;      // for messages; NULL: "function"
    bool loss;             // `output` is then not read
    tr_tensor_desc output; // TR_BATCH first; F32: the type that the run computes in
    bool (*forward)(void *user, const tr_function_call *call);
    bool (*backward)(void *user, const tr_function_call *call);
    void *user;
    // Bytes of host memory that a call takes beside the plan's, as the caller has
    // measured them; 0: not known. The plan prints them, its ledger does not count
    // them.
    int64_t outside_bytes;
    // The function takes memory of a GPU, too, and puts its work on the stream of the
    // call. Of a plan on the CPU it is called as others are.
    bool on_device;
} tr_function;

#define TR_FUNCTION_INIT                                                               \
    {                                                                                  \
        sizeof(tr_function), NULL, false, {TR_NONE, {0, {0, 0, 0, 0}}}, NULL, NULL,    \
            NULL, 0, false                                                             \
    }

// Adds a function of the caller's as an op. `function` is not copied: it must outlive
// the run. inputs: [input_count], parameters among them; at most TR_FUNCTION_INPUTS,
// one less for a loss. Returns the output. A loss has none (TR_NO_VALUE), and ends the
// last unit. TR_USAGE, as the graph's error: the struct's size is unknown, a function
// is NULL, there are too many inputs, an input is TR_NO_VALUE, or the output is not F32
// with TR_BATCH first.
TR_API tr_value tr_graph_function(tr_graph *graph, const tr_function *function,
                                  const tr_value *inputs, int input_count);

// Adds y = f(x) of each element of x, in the shape of x: `value` is f, `slope` its
// derivative. Both give the same number for the same x on any thread, until the run is
// destroyed. They run on the host, in F32 even if the run computes in 16 bits. A plan
// on another device has no kernel for them. TR_USAGE, as the graph's error: a function
// that is NULL, or x is no value of real numbers.
TR_API tr_value tr_graph_map(tr_graph *graph, tr_value x, float (*value)(float x),
                             float (*slope)(float x));

// ---- asking

// Type and shape of a value, with TR_BATCH; TR_NONE: there is no such value.
TR_API tr_tensor_desc tr_graph_desc(const tr_graph *graph, tr_value value);
// Stops the graph with an error of the model's code. (tr_graph_fail_at: as tr_fail_at.)
TR_API void tr_graph_fail(tr_graph *graph, tr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
TR_API void tr_graph_fail_at(tr_graph *graph, tr_status status, const char *file,
                             int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
#ifndef __cplusplus
#define tr_graph_fail(graph, status, ...)                                              \
    tr_graph_fail_at((graph), (status), __FILE__, __LINE__, __VA_ARGS__)
#endif
TR_API tr_status tr_graph_status(const tr_graph *graph, tr_error *err);

// ---- the model

// A unit is sharded, gathered, recomputed and offloaded as a whole. Units of the same
// `kind` must build the same graph; they share one compiled program.
typedef struct tr_model_unit {
    const char *name;   // "h.3"
    const char *kind;   // "block"
    const char *prefix; // put before its parameters' names: "transformer.h.3."
    void (*build)(tr_graph *graph, const void *config);
    const void *config; // handed to `build`
} tr_model_unit;

struct tr_rewrite;
struct tr_adapter;

// Begin with TR_MODEL_INIT, or with `.size = sizeof(tr_model)`.
typedef struct tr_model {
    size_t size;      // of this struct
    const char *type; // "gpt2", "mlp", or a name of the caller's
    int unit_count;   // in order; the last one ends with the loss, or with outputs of
                      // which the caller makes a loss (tr_engine_forward)
    const tr_model_unit *units; // [unit_count]
    // The tensors of a batch that the model reads. Units ask for them by name
    // (tr_graph_data). A data set must have tensors of the same names, types and
    // shapes, and no others.
    tr_batch_tensors batch;
    // Targets and, for tokens, inputs lie in [0, classes). INT32_MAX: they may be any
    // numbers; no op of the model may index anything with them.
    int64_t classes;
    // The names, in files, of tensors that have one row for each token; NULL at the
    // end. NULL: there are none. In files they have `padded_classes` rows (0:
    // `classes`). Rows from `classes` on are zeros that nothing reads.
    const char *const *token_tensors;
    int64_t padded_classes;
    bool classifier; // accuracy has a meaning
    // How many numbers the embedding of a text has, which inference gives in place of
    // logits. 0: it gives logits.
    int64_t embedding_width;
    // If the model gives each text labels: their kind, how many there are, and their
    // names [labels] (NULL: numbers). Inference gives one number for each label of a
    // text, in place of logits of tokens.
    tr_label_kind label_kind;
    int64_t labels;
    const char *const *label_names;
    // Rewrites of ops of its units (tranche/extend/rewrite.h), which come before the
    // library's own. The last row has no function. NULL: none.
    const struct tr_rewrite *rewrites;
    int rewrites_version; // TRANCHE_EXTEND_VERSION, if there are rewrites
    // Adapters beside linear layers. The library sets it for the run key "adapter"; a
    // caller leaves it NULL.
    const struct tr_adapter *adapter;
    const char *config_json; // written to checkpoints as config.json; NULL: {}
    void *owned;             // the maker's; freed by `release`
    void (*release)(struct tr_model *model); // NULL: the caller keeps it all
} tr_model;

#define TR_MODEL_INIT                                                                  \
    {                                                                                  \
        sizeof(tr_model), NULL, 0, NULL, TR_BATCH_TENSORS_INIT, 0, NULL, 0, false, 0,  \
            TR_LABELS_NONE, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL                   \
    }

// The largest number of targets of one sample, in any one tensor.
TR_API int64_t tr_model_targets(const tr_model *model);
TR_API void tr_model_destroy(tr_model *model); // NULL-safe

#ifdef __cplusplus
}
#endif
#endif
