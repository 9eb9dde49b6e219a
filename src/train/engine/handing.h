// What passes between the engine's memory and the caller of a step in parts, while the
// walk stands before a step of the plan.
#ifndef TR_TRAIN_ENGINE_HANDING_H
#define TR_TRAIN_ENGINE_HANDING_H

#include "train/engine.h"

// TR_USAGE, TR_DATA: what is wrong with what the caller has handed over.
tr_status tr__handing_check(const tr_engine *engine, const tr_forward_options *options,
                            const char *function, tr_error *err);
// Does the caller hand rows over? Else they are the run's own.
bool tr__handing_has_rows(const tr_forward_options *options);
// Copies the caller's rows into the slot that the step of the plan takes. sample: the
// global index of the first. Errors are the device's.
tr_status tr__handing_load(tr_engine *engine, const tr_plan_step *load,
                           const tr_forward_options *options, int64_t sample,
                           tr_error *err);
// Views of the outputs that the step of the plan hands out.
void tr__handing_show(const tr_engine *engine, const tr_plan_step *hand_out,
                      tr_outputs *outputs);
// The micro-batch has outputs on other ranks alone: those of the pipeline's stage
// that has the last unit.
// trains: or is it evaluated?
void tr__handing_show_none(const tr_engine *engine, const tr_plan_step *load,
                           bool trains, tr_outputs *outputs);
// Takes the gradients of these outputs to where the backward reads them, times the
// step's seed, and the loss into the statistics. Errors are the device's.
tr_status tr__handing_take(const tr_engine *engine, const tr_plan_step *hand_out,
                           const tr_backward_options *options, tr_error *err);

#endif
