// What a point is made of, resolved as a plan resolves it, as far as bounds go by it.
#ifndef TR_PLANNER_OUTLINE_H
#define TR_PLANNER_OUTLINE_H

#include "planner/planner.h"

// Of a pipeline, memory and what goes on beside computing are those of the first stage.
typedef struct tr_outline {
    const tr_plan_request *request;
    const tr_kernels *kernels;
    const tr_class *class;
    tr_chunks chunks;
    const int *chunk; // of each unit; NULL: there is one
    // Stages are cut where the class's are; else the share of what lives always that
    // there is at least, by the parameters of the first stage.
    bool cut_alike;
    double part;
    int units;
    int64_t again;       // recomputed units
    int64_t steps, wave; // g
    // What leaves the device between forward and backward: inputs of recomputed units;
    // what the others save.
    bool inputs_leave, saved_leave;
    bool weights_later; // a backward works in less memory than that of the figures
    bool discrete;      // both ways at once
    bool twice; // in two passes: when the last unit's loss is at work, nothing is kept
} tr_outline;

// What follows from the turns of a pipeline's stages (course.c).
typedef struct tr_course {
    double seconds[2]; // at least; [1]: of a model that stays in the cache
    // [chunks] What the stage keeps of other waves and chunks at a backward of this
    // one.
    int64_t *beside;
} tr_course;

tr_outline tr__outline_of(const tr_search *search, const tr_group *group, size_t rung);
// The chunk of the model, and the stage, that unit u is in; is it the first stage?
int tr__outline_chunk(const tr_outline *s, int u);
int64_t tr__outline_stage(const tr_outline *s, int u);
bool tr__outline_is_own(const tr_outline *s, int u);
bool tr__outline_is_again(const tr_outline *s, int u);
const tr_unit_figures *tr__outline_unit(const tr_outline *s, int u);
// Does the recomputed unit's input leave the device, does what the unit saves?
bool tr__outline_input_leaves(const tr_outline *s, int u);
bool tr__outline_saved_leave(const tr_outline *s, int u);
// What unit u keeps of each micro-batch until its backward, with *boundary beside it.
int64_t tr__outline_kept(const tr_outline *s, int u, int64_t *boundary);
// Seconds of a micro-batch in a unit in which nothing is computed; and of what ranks
// exchange behind it.
double tr__outline_waiting(const tr_outline *s, int u);
double tr__outline_waiting_behind(const tr_outline *s, int u);

// ---- bound.c
// course: NULL where it is not known.
tr_bound tr__bound_of(const tr_outline *s, const tr_machine *machine,
                      const tr_course *course);

#endif
