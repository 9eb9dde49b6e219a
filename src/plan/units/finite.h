// What was the first that was not finite: fp16's range is small, and who lowers the
// scale, or looks for a mistake, must know where. Behind each instruction of a training
// its program checks the results, and notes where the first was that is infinite or not
// a number.
#ifndef TR_PLAN_UNITS_FINITE_H
#define TR_PLAN_UNITS_FINITE_H

#include "plan/units/program.h"

// A place in a step of all ranks, which is a number that is the smaller the earlier it
// is.
typedef struct tr_step_place {
    int64_t micro, visit; // visit: forward of the units, then backward
    int64_t segment, instruction, result;
    bool saves_nothing;
} tr_step_place;

// Does a program of this role check its results?
bool tr__checks_finite(const tr_compile_request *request, tr_variant role);
// The number of a place is that of the step's launch (tr_run_context.place) and that of
// the result in the program (tr_nonfinite_attr.place): `units` of the model.
double tr__place_of_launch(const tr_step_place *place, int64_t units);
double tr__place_of_result(const tr_step_place *place);
tr_step_place tr__place_read(double number, int64_t units);

#endif
