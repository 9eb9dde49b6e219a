// The values that units' programs work on in a sequence, by what they hold; and the
// payload of a step that runs a program, which names them. A value is made when the
// first step names it.
//
// Parameters that do not stay on the device, gradients that pass, and what kernels have
// packed have one value each here, as if they were always there: passes that bring them
// and take them away put others in its place (stand_ins.h).
#ifndef TR_PLAN_FLOW_UNIT_VALUES_H
#define TR_PLAN_FLOW_UNIT_VALUES_H

#include "plan/flow/step.h"

// Working memory in which sums of another type become f32. Steps that follow each other
// share it: on the host's stream they are not done when the next one is issued.
typedef enum tr_convert {
    TR_CONVERT_SQUARES,
    TR_CONVERT_MEASURE, // the first phase of an update
    TR_CONVERT_UPDATE,
    TR_CONVERTS
} tr_convert;

// -1: not yet named.
typedef struct tr_unit_values {
    int64_t micros;
    int32_t *boundary, *gradient; // [units + 1][micros] before the unit
    int32_t *saved, *held;        // [units][micros]
    int32_t *carried;             // the same, of the pieces that are at work there
    int32_t *wave, *wave_grad;    // [units]
    int32_t *packed;              // [units][2] of the forward's ops, the backward's
    int32_t *param, *grad;        // [flats]
    int32_t *sum;                 // [flats] what passing gradients are accumulated into
    int32_t convert[2][TR_CONVERTS]; // on the device, on the host
    int32_t measured;                // what this rank has measured of tensors
    int32_t tensor_sums;             // exact sums of that
    int32_t totals;                  // the norms of tensors
} tr_unit_values;

tr_status tr__unit_values_make(tr_plan *plan, tr_sequence_kind kind, tr_error *err);
void tr__unit_values_clear(tr_plan *plan, tr_sequence_kind kind);

// Parameters of a flat buffer on the device: where they stay, or as if they did. -1: no
// memory.
int32_t tr__param_value(tr_plan *plan, tr_sequence_kind kind, int flat, tr_error *err);
// Gradients of a flat buffer as a backward makes them, likewise.
int32_t tr__grad_value(tr_plan *plan, tr_sequence_kind kind, int flat, tr_error *err);

// And the sums of another type that those which pass are accumulated into.
int32_t tr__sum_value(tr_plan *plan, tr_sequence_kind kind, int flat, tr_error *err);

// The payload of a step that runs a program of its unit on its micro-batch.
tr_status tr__unit_launch(tr_plan *plan, tr_sequence_kind kind,
                          const tr_program *program, tr_plan_step *step, tr_error *err);

// Do parameters lie in the flats' own buffers, whole? Else they are brought into
// others.
bool tr__plan_params_stay(const tr_plan *plan);

#endif
