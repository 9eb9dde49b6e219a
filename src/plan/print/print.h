// Parts of what is printed of a plan.
#ifndef TR_PLAN_PRINT_PRINT_H
#define TR_PLAN_PRINT_PRINT_H

#include "base/json_writer.h"
#include "plan/flow/plan.h"

#include <tranche/extend/plan.h>

// "batch 8 = micro-batch 2 x 4 accumulation steps x 1 rank".
void tr__plan_print_batch(const tr_plan_request *request, FILE *to);
// Which units are recomputed, of so many: "no unit", "the first 3 units". They are
// counted as the key is (activation_checkpointing.number_checkpoints): those that have
// nothing to make again count, too. dst: [size]
void tr__plan_recomputed_say(int64_t first, int units, char *dst, size_t size);
// In words which result of the step is the one of this number, that the statistics of
// the step have for what was first not finite: micro-batch and tensor; "" for 0. dst:
// [bytes]
void tr__plan_blame(const tr_plan *plan, double first, char *dst, size_t bytes);
// The stages of a pipeline, where there are several: for people. As a member
// "pipeline", with these figures of the plan's stages.
void tr__stages_print(const tr_plan *plan, FILE *to);
void tr__stages_write(const tr_plan *plan, const tr_stage_figures *stages,
                      tr_json_writer *to);
// The kernels of the units, by name.
tr_status tr__kernels_print(const tr_plan *plan, FILE *to, tr_error *err);
// As a member "libraries": of kernels that call one, what they say of how it computes.
tr_status tr__kernels_write(const tr_plan *plan, tr_json_writer *to, tr_error *err);
// The functions of the caller's that the units call, where there are such: for people,
// and as a member "functions".
tr_status tr__functions_print(const tr_plan *plan, FILE *to, tr_error *err);
tr_status tr__functions_write(const tr_plan *plan, tr_json_writer *to, tr_error *err);
// tr_plan_print and tr_plan_print_json.
tr_status tr__plan_print(const tr_plan *plan, FILE *to, tr_error *err);
tr_status tr__plan_print_json(const tr_plan *plan, FILE *to, tr_error *err);
// The latter without the braces around it.
tr_status tr__plan_write_members(const tr_plan *plan, tr_json_writer *to,
                                 tr_error *err);

#endif
