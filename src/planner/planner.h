// Inside of the planner. The plans to choose from are the points of a table of
// dimensions. Few of them are made:
//
//   kernels   what the units' programs take, for each micro-batch size: one small plan
//   class     what moves and what lives always, for each way to place and share things:
//             two small plans
//   bound     from these two, without making the plan: it takes at least so many bytes,
//             and so much time
//   search    makes plans in the order of the bounds, until no bound is below the
//             fastest that fits
#ifndef TR_PLANNER_PLANNER_H
#define TR_PLANNER_PLANNER_H

#include "plan/flow/plan.h"
#include "planner/settings.h"
#include "sim/simulate.h"

#include <tranche/extend/planner.h>

#include <stdio.h>

// ---- what small plans tell

// A unit, one micro-batch.
typedef struct tr_unit_figures {
    // Seconds of all, with what is recomputed; of the forward; of the backward itself.
    // [1]: of a model that stays in the cache.
    double seconds[2], forward[2], backward_seconds[2];
    // Seconds of what ranks exchange in the forward; and of it, behind the last kernel.
    double messages, messages_behind;
    // As the plan counts where it cuts stages: all, with what is recomputed; forward.
    double cost, forward_cost, backward_cost;
    int64_t saved;         // bytes from forward to backward
    bool worth;            // can be recomputed
    bool backward;         // there is one
    int64_t parameters;    // elements
    int64_t input, output; // boundaries: what it is given, the gradient handed to it
    bool keeps_input;      // for its backward
    bool keeps_output;     //
    bool in_place;         // its input's gradient lies where its output's does
    int64_t backward_workspace;
} tr_unit_figures;

// A unit whose gradients of weights come later, one micro-batch: what its turns take.
typedef struct tr_turn_figures {
    double cost[TR_TURN_KINDS]; // as the plan counts
    double seconds[2][TR_TURN_KINDS];
} tr_turn_figures;

// The chunk of the model that each unit is in.
typedef struct tr_unit_chunks {
    int chunks;
    int64_t again; // recomputed units
    int *of_unit;  // [units]
} tr_unit_chunks;

typedef struct tr_kernels {
    int64_t micro_batch, slices, tensor_ranks;
    bool many;           // micro-batches: what all read is packed once
    uint32_t recomputed; // classes of tensors that units recompute
    int64_t slot;        // bytes of a micro-batch's data
    // [units] as they are, and where those that can be are recomputed.
    tr_unit_figures *units, *again;
    tr_turn_figures *later; // [units]; NULL: nobody has asked for them
    tr_unit_chunks *cuts;   // those that have been asked for
    size_t cut_count, cut_capacity;
} tr_kernels;

typedef struct tr_class {
    int64_t value[TR_DIMENSIONS]; // of those that are in_class
    bool possible;
    bool whole_wave;            // wave = g only
    bool single_wave;           // wave = 1 only
    int64_t always[TR_SPACES];  // bytes that live always; with one micro-batch of one
    int64_t passing[TR_SPACES]; // the least that passes
    bool *own;                  // [units] on the first stage, as these plans cut
    int64_t *moved;             // [units] parameters and gradients that pass and live
                                // while the unit's backward is at work
    int64_t slot;               // of data, in `always`
    // Seconds at work that are not of units' programs: with the first micro-batch
    // (compute) or wave (the other streams), and more with each further one.
    double load[TR_STREAMS][2];
    double unit_load; // of the stream of messages: what one unit has of it, at most
} tr_class;

// What a point takes at least.
typedef struct tr_bound {
    double seconds;
    int64_t bytes[TR_SPACES]; // of the ledger
} tr_bound;

// ---- search

// Times closer than this are the same: then the plan that takes less is better.
#define TR_SAME_TIME 1e-3

enum {
    TR_BUDGET_TOGETHER = TR_SPACES,
    TR_BUDGETS, // of the spaces, and of device and host together
};

typedef struct tr_limits {
    int64_t most[TR_BUDGETS]; // bytes of the ledger
} tr_limits;

// Points that differ in how many units are recomputed.
typedef struct tr_group {
    tr_point point;
    tr_kernels *kernels;
    tr_class *class;
    tr_bound *close; // [rungs] tr__bound_close, of seconds > 0; NULL: none is known
} tr_group;

typedef struct tr_made {
    tr_planner_option option; // bytes: of the ledger
    bool possible;
    bool partial; // some stages are beyond what was asked for: others were not made
} tr_made;

typedef struct tr_search {
    const tr_planner_request *request; // own
    tr_planner_request own;            // more may be free than was asked for
    tr_error why;                      // why something cannot be: the first reason
    tr_group *groups;
    size_t group_count, group_capacity;
    int64_t *ladder; // numbers of recomputed units, ascending
    size_t ladder_count;
    tr_kernels **kernels;
    size_t kernel_count, kernel_capacity;
    tr_class **classes;
    size_t class_count, class_capacity;
    tr_made *made; // every plan that was made
    size_t made_count, made_capacity;
    int64_t steps; // of all of them
} tr_search;

// Makes the groups of a request, with those dimensions free.
tr_status tr__search_begin(const tr_planner_request *request, unsigned free,
                           tr_search **out, tr_error *err);
void tr__search_end(tr_search *search); // NULL-safe
tr_bound tr__bound(const tr_search *search, const tr_group *group, size_t rung);
// A closer one, for which the stages of a pipeline take their turns. The same where
// there is one stage.
tr_bound tr__bound_close(const tr_search *search, const tr_group *group, size_t rung);
// The request of the plan that is made of the point: a plan of many waves is told by
// one of fewer. Is that so?
bool tr__search_shortens(const tr_search *search, const tr_plan_request *r,
                         tr_plan_request *made);
// The plan, made and walked; not possible: what the plan or the machine does not take.
// Once a stage is beyond the limits no other is made. limits: NULL for none.
tr_status tr__search_make(tr_search *search, const tr_point *point,
                          const tr_limits *limits, tr_made *out, tr_error *err);
// The fastest within the limits; false in *found: none. At most `plans` are made.
tr_status tr__search_fastest(tr_search *search, const tr_limits *limits, size_t plans,
                             tr_made *out, bool *found, tr_error *err);
// The one that takes the least of `budget` within the other limits.
tr_status tr__search_smallest(tr_search *search, const tr_limits *limits, int budget,
                              tr_made *out, bool *found, tr_error *err);
// How many rungs of the ladder are tried in the group. Where gradients of weights come
// later, the first alone: what is put off keeps all of its unit, whether that is made
// again or not, so recomputing units would take time and save little.
size_t tr__group_rungs(const tr_search *search, const tr_group *group);
// tr__bound_close, found once.
tr_bound tr__group_close(tr_search *search, const tr_group *group, size_t rung);
// The plans nearest to the limits among those that take less than `seconds` (0: any):
// [most], the nearest first. Returns how many in *count.
tr_status tr__search_nearest(tr_search *search, const tr_limits *limits, double seconds,
                             size_t most, tr_made *out, size_t *count, tr_error *err);

tr_point tr__group_point(const tr_search *search, const tr_group *group, size_t rung);
tr_limits tr__planner_limits(const tr_planner_request *request);
// By how much `bytes` are beyond each limit, and in all.
int64_t tr__limits_excess(const tr_limits *limits, const int64_t bytes[TR_SPACES],
                          int64_t excess[TR_BUDGETS]);
bool tr__made_fits(const tr_limits *limits, const tr_made *made);
// What of a ledger counts against a budget, and what the process takes of it beside.
int64_t tr__budget_bytes(int budget, const int64_t bytes[TR_SPACES]);
int64_t tr__budget_process(const tr_planner_request *request, int budget);
// The budget that the user has least of: the whole, where that is given, else the
// device's.
int tr__budget_scarce(const tr_planner_request *request);

// Where the classes of tensors to recompute are to be chosen and none are named:
// of the model's (tr_plan_recompute_choices), those that are clearly cheaper than
// recomputing whole units that hold as many bytes.
tr_status tr__planner_find_recompute_choices(tr_planner_request *request,
                                             tr_error *err);

// ---- stages.c
// All units on each rank.
void tr__request_one_stage(tr_plan_request *request);
// The chunk of each of the kernels' units [units] where a plan cuts the model into so
// many, with the first `again` units recomputed; NULL: one chunk, or no memory. It
// belongs to the kernels.
const int *tr__kernels_cut(tr_kernels *kernels, int units, int chunks, int64_t again);
// Waves of which the first stage keeps what the i-th of its chunks of the model needs
// again, when its first backward begins; at least. away: forwards of it for which a
// wave is away on the other stages.
int64_t tr__waves_kept(const tr_plan_request *request, int64_t waves, int64_t i,
                       double away);

// ---- figures.c
tr_status tr__kernels_make(const tr_search *search, const tr_point *point,
                           tr_kernels **out, tr_error *err);
void tr__kernels_destroy(tr_kernels *kernels);
// [units], of the kernels of the point; they belong to these. NULL: there are none.
const tr_turn_figures *tr__kernels_later(const tr_search *search, const tr_point *point,
                                         tr_kernels *kernels);
tr_status tr__class_make(const tr_search *search, const tr_point *point, tr_class **out,
                         tr_error *err);
void tr__class_destroy(tr_class *class);

// ---- what came of it

enum { TR_TIMELINE_COLUMNS = 64, TR_RUNNERS_MAX = 4 };

typedef struct tr_timeline {
    double seconds;
    char column[TR_STREAMS][TR_TIMELINE_COLUMNS + 1]; // "": nothing on that stream
    double busy[TR_STREAMS];                          // seconds at work
    double kind[TR_VERBS];
} tr_timeline;

// How a simulated step spends its time.
void tr__timeline_draw(const tr_simulated *simulated, tr_timeline *out);

struct tr_planned {
    tr_planner_request request;
    tr_plan_request plan; // chosen
    char *machine;        // its name
    tr_planner_option choice;
    bool kept;
    tr_planner_option runner[TR_RUNNERS_MAX];
    size_t runner_count;
    bool has_faster; // what would fit next if a budget were larger
    tr_planner_option faster;
    bool has_smallest;
    tr_planner_option smallest;
    char smallest_at[160]; // "backward h.0: parameters 1.2 MiB, ..."
    tr_timeline timeline;
    size_t points, plans; // looked at, made
};

// The plan that takes the least of a budget that is lacking, within the budgets that
// are not.
tr_status tr__planner_least(tr_search *search, const tr_limits *limits, int budget,
                            tr_made *out, bool *found, tr_error *err);
// Lists what would make a plan fit, each by itself, or nearly so: how much less of the
// lacking budget it needs than `base`. "": nothing would. dst: [size]
tr_status tr__planner_levers(const tr_search *search, int budget, int64_t base,
                             char *dst, size_t size, tr_error *err);
// TR_BUDGET, with the nearest plans and what would make one fit; TR_USAGE where none is
// possible, whatever the budgets.
tr_status tr__planner_refuse(tr_search *search, const tr_limits *limits, tr_error *err);
// TR_USAGE: why no plan is possible.
tr_status tr__planner_impossible(const tr_search *search, tr_error *err);
// "device", "total"; in JSON the total is "device and host".
const char *tr__budget_word(const tr_planner_request *request, int budget);
const char *tr__budget_name(int budget);
// When the device is fullest, and with what: "backward of h.0, with ...". dst: [size]
tr_status tr__planner_fullest(const tr_search *search, const tr_planner_option *option,
                              char *dst, size_t size, tr_error *err);

// ---- print.c, print_json.c: tr_planned_print and tr_planned_print_json
tr_status tr__planned_print(const tr_planned *planned, FILE *to, tr_error *err);
tr_status tr__planned_print_json(const tr_planned *planned, FILE *to, tr_error *err);

#endif
