// The planner: of all plans that fit the memory, the one predicted to be the fastest.
//
//     tr_planner_choose -> tr_planned_request -> tr_plan_make
//
// A run file does this by itself (tr_run_open, tr_run_planned).
#ifndef TRANCHE_PLANNER_H
#define TRANCHE_PLANNER_H

#include <tranche/simulate.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a plan can be chosen by.
// X(name)
#define TR_DIMENSION_LIST(X)                                                           \
    X(micro_batch) /* with it the accumulation steps: T never changes */               \
    X(stage)                                                                           \
    X(optimizer_placement)                                                             \
    X(grad_placement) /* 1: NVMe, 0: where the update is */                            \
    X(param_placement)                                                                 \
    X(vocabulary_slices)                                                               \
    X(wave)                                                                            \
    X(recomputed_ops)     /* classes of tensors that units recompute    */             \
    X(boundary_placement) /* 1: inputs of recomputed units wait on the host */         \
    X(recomputed_units)

typedef enum tr_dimension_name {
#define TR_DIMENSION_ENUM(name) TR_DIMENSION_##name,
    TR_DIMENSION_LIST(TR_DIMENSION_ENUM)
#undef TR_DIMENSION_ENUM
        TR_DIMENSIONS
} tr_dimension_name;

// "micro_batch"
const char *tr_dimension_word(tr_dimension_name dimension);

#define TR_UNLIMITED INT64_MAX

typedef struct tr_planner_request {
    tr_plan_request plan;      // what is not free is taken from here
    unsigned free;             // bit d: dimension d is to be chosen
    const tr_machine *machine; // what predictions go by
    int64_t budget[TR_SPACES]; // bytes on one rank, or TR_UNLIMITED. In the host's,
                               // TR_PROCESS_BYTES are taken by the process itself
    int64_t together;          // of device and host: where they are one memory
    int64_t vocabulary_slices; // that plan.model has now
    tr_model *sliced;          // plan.model, to be cut into other slices of its
                               // vocabulary on the way; NULL: it cannot be
    // What to try as plan.recomputed_ops; none: found in the model.
    uint32_t recompute_choices[TR_RECOMPUTE_CHOICES_MAX];
    int recompute_choice_count;
    int64_t kept[TR_DIMENSIONS]; // an earlier choice, taken again if it still fits
    bool has_kept;
    bool choice_only; // nothing beside the choice is looked for: no runners-up
} tr_planner_request;

// A plan that was made and walked.
typedef struct tr_planner_option {
    int64_t value[TR_DIMENSIONS];
    double seconds;           // of a step, predicted
    int64_t bytes[TR_SPACES]; // of its ledger
} tr_planner_option;

typedef struct tr_planned tr_planned;

// Chooses. A function of the request alone; takes no tensor memory. With nothing free,
// says whether the plan fits. plan.model is left in the slices that were chosen. The
// caller destroys *out. TR_BUDGET: nothing fits; the message has the nearest plans and
// what would make each fit. TR_USAGE: what is not free makes no plan; TR_MEMORY.
tr_status tr_planner_choose(const tr_planner_request *request, tr_planned **out,
                            tr_error *err);
void tr_planned_destroy(tr_planned *planned); // NULL-safe

// What tr_plan_make needs for the chosen plan.
const tr_plan_request *tr_planned_request(const tr_planned *planned);
const tr_planner_option *tr_planned_choice(const tr_planned *planned);
// The fastest plans that take clearly less of the device; NULL: the i-th is not there.
const tr_planner_option *tr_planned_runner_up(const tr_planned *planned, size_t i);
// The one that takes the least of the device within the other budgets.
const tr_planner_option *tr_planned_smallest(const tr_planned *planned);
bool tr_planned_is_kept(const tr_planned *planned); // an earlier choice

// For people; as the value of a key of a JSON object. TR_IO.
tr_status tr_planned_print(const tr_planned *planned, FILE *to, tr_error *err);
tr_status tr_planned_print_json(const tr_planned *planned, FILE *to, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
