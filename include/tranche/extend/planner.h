// The planner: finds, among all plans that fit the memory, the one with the shortest
// predicted step.
//
//     tr_planner_choose -> tr_planned_request -> tr_plan_make
//
// tr_run_resolve does this for a run file; tr_run_planned returns its result.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_PLANNER_H
#define TRANCHE_EXTEND_PLANNER_H

#include <tranche/extend/plan.h>
#include <tranche/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the planner can choose.
// X(name)
#define TR_DIMENSION_LIST(X)                                                           \
    X(tensor_ranks) /* of the mesh; all that are left are data ranks */                \
    X(pipeline_stages)                                                                 \
    X(pipeline_order) /* a tr_pipeline_order */                                        \
    X(virtual_stages)                                                                  \
    X(micro_batch) /* and so the accumulation steps: the batch stays */                \
    X(stage)                                                                           \
    X(optimizer_placement)                                                             \
    X(grad_placement) /* 1: NVMe, 0: where the update is */                            \
    X(param_placement)                                                                 \
    X(vocabulary_slices)                                                               \
    X(passes) /* forwards of a step whose loss is over all micro-batches */            \
    X(wave)                                                                            \
    X(alternating)        /* micro-batches that take turns where ranks exchange */     \
    X(recomputed_ops)     /* classes of tensors that units recompute */                \
    X(boundary_placement) /* 1: inputs of recomputed units wait on the host */         \
    X(saved_placement)    /* 1: so does what the other units save */                   \
    X(recomputed_units)

typedef enum tr_dimension_name {
#define TR_DIMENSION_ENUM(name) TR_DIMENSION_##name,
    TR_DIMENSION_LIST(TR_DIMENSION_ENUM)
#undef TR_DIMENSION_ENUM
        TR_DIMENSIONS
} tr_dimension_name;

// "micro_batch"
TR_API const char *tr_dimension_word(tr_dimension_name dimension);

#define TR_UNLIMITED INT64_MAX

struct tr_planner_lever;

typedef struct tr_planner_request {
    tr_plan_request plan;      // values of what is not free
    unsigned free;             // bit d: dimension d is to be chosen
    const tr_machine *machine; // the cost model of predictions
    int64_t budget[TR_SPACES]; // bytes on one rank, or TR_UNLIMITED. The process itself
                               // takes plan.process_bytes of the host's
    int64_t together;          // budget of device and host in all, the process included
    bool total; // the user gave `together`, so messages about a budget name it
    int64_t vocabulary_slices; // that plan.model has now
    tr_model *sliced;          // plan.model, if the planner may change its vocabulary
                               // slices; NULL: it may not
    // Values to try as plan.recomputed_ops; none: those that the model suggests.
    uint32_t recompute_choices[TR_RECOMPUTE_CHOICES_MAX];
    int recompute_choice_count;
    int64_t kept[TR_DIMENSIONS]; // an earlier choice, taken again if it still fits
    bool has_kept;
    bool choice_only; // find the choice alone, and no runners-up
    // Called if no plan fits. Gives changes that the planner may not make itself, so
    // that it can tell what each would do. Fills [TR_LEVERS_MAX] from the request and
    // returns how many. NULL: there are none.
    size_t (*levers)(void *user, const struct tr_planner_request *request,
                     struct tr_planner_lever *out);
    void *lever_user;
    // Called after each plan, with the number of plans so far. NULL: no call.
    void (*tell)(void *user, size_t plans);
    void *tell_user;
} tr_planner_request;

enum { TR_LEVERS_MAX = 16, TR_LEVER_WORDS = 160 };

typedef struct tr_planner_lever {
    char words[TR_LEVER_WORDS]; // "bf16.enabled true"
    tr_planner_request request; // with that change
} tr_planner_lever;

// A plan that the planner made, and whose step it predicted.
typedef struct tr_planner_option {
    int64_t value[TR_DIMENSIONS];
    double seconds;           // of a step, predicted
    int64_t bytes[TR_SPACES]; // of its ledger
} tr_planner_option;

typedef struct tr_planned tr_planned;

// Chooses a plan. The result depends on the request alone. Takes no memory for tensors.
// If no dimension is free, it checks whether the plan fits. plan.model keeps the
// vocabulary slices that were chosen. The caller destroys *out. Not collective.
// TR_BUDGET: no plan fits; the message has the nearest plans, what each of them lacks,
// and what would make one fit. TR_USAGE: no plan has the values that are not free,
// whatever the budgets. TR_MEMORY.
TR_API tr_status tr_planner_choose(const tr_planner_request *request, tr_planned **out,
                                   tr_error *err);
TR_API void tr_planned_destroy(tr_planned *planned); // NULL-safe

// What tr_plan_make needs for the chosen plan.
TR_API const tr_plan_request *tr_planned_request(const tr_planned *planned);
TR_API const tr_planner_option *tr_planned_choice(const tr_planned *planned);
// The i-th of the fastest plans that take clearly less device memory than the choice;
// NULL: there are fewer.
TR_API const tr_planner_option *tr_planned_runner_up(const tr_planned *planned,
                                                     size_t i);
// The plan that takes the least device memory within the other budgets.
TR_API const tr_planner_option *tr_planned_smallest(const tr_planned *planned);
TR_API bool tr_planned_is_kept(const tr_planned *planned); // an earlier choice

// Prints a table, or one JSON value. TR_IO: `to` takes no more. TR_MEMORY.
TR_API tr_status tr_planned_print(const tr_planned *planned, const tr_sink *to,
                                  tr_error *err);
TR_API tr_status tr_planned_print_json(const tr_planned *planned, const tr_sink *to,
                                       tr_error *err);

// ---- of a run

// The request that tr_plan_make takes. Owned by the run.
TR_API const tr_plan_request *tr_run_plan_request(const tr_run *run);
// The planner's choice, owned by the run. NULL: the run asked the planner for nothing,
// or this is not rank 0.
TR_API const tr_planned *tr_run_planned(const tr_run *run);

#ifdef __cplusplus
}
#endif
#endif
