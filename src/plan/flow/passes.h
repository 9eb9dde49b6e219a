// The passes, in the order of make.c, and what checks the plan that they have made.
#ifndef TR_PLAN_FLOW_PASSES_H
#define TR_PLAN_FLOW_PASSES_H

#include "plan/flow/plan.h"

// Units' programs (one for each kind).
tr_status tr__pass_compile(tr_plan *plan, tr_error *err);
void tr__plan_destroy_programs(tr_plan *plan);
// What a unit's forward or backward costs where stages are cut.
double tr__unit_cost(const tr_unit_program *unit, tr_variant variant);
// Which units each stage of a pipeline runs.
tr_status tr__pass_cut_stages(tr_plan *plan, tr_error *err);
// Flat buffers and the parameters in them.
tr_status tr__pass_partition(tr_plan *plan, tr_error *err);
// The wave, where the request leaves it open. TR_USAGE: it cannot be as asked.
tr_status tr__pass_choose_wave(tr_plan *plan, tr_error *err);
// In which order this rank's stage takes waves through its parts of the model.
tr_status tr__pass_turns(tr_plan *plan, tr_error *err);
// Proves that the slices of every stored tensor are the whole of it, each element once.
// Called by tr__pass_partition.
tr_status tr__plan_check_slices(const tr_plan *plan, tr_error *err);
// No two of its parameters have one name. Likewise.
tr_status tr__plan_check_names(const tr_plan *plan, tr_error *err);
// The order of work: wave by wave, unit by unit, segment by segment.
tr_status tr__pass_order(tr_plan *plan, tr_error *err);
// A step that runs forward twice, where its loss is over all micro-batches.
tr_status tr__pass_two_passes(tr_plan *plan, tr_error *err);
// Where the model has no loss, each micro-batch's outputs go to the caller, who gives
// their gradients back.
tr_status tr__pass_hand_out(tr_plan *plan, tr_error *err);
// What stages of a pipeline hand on to each other.
tr_status tr__pass_pipeline(tr_plan *plan, tr_error *err);
// Units whose activations are dropped and recomputed before their backward.
tr_status tr__pass_recompute(tr_plan *plan, tr_error *err);
// Some micro-batches of a wave compute while another one exchanges inside of a unit.
tr_status tr__pass_alternate(tr_plan *plan, tr_error *err);
// Between two pieces of a unit's program, ranks sum what the first has made.
tr_status tr__pass_exchange(tr_plan *plan, tr_error *err);
// Sums that are not f32: each micro-batch's gradients are accumulated into them.
tr_status tr__pass_accumulate(tr_plan *plan, tr_error *err);
// The squares of one micro-batch's gradients, or of one wave's, for the noise scale.
tr_status tr__pass_micro_norm(tr_plan *plan, tr_error *err);
// What ranks bring together and sum, and when.
tr_status tr__pass_communicate(tr_plan *plan, tr_error *err);
// Stages sum the gradients of the tied tensors that both of them use.
tr_status tr__pass_tied(tr_plan *plan, tr_error *err);
// Updates of what lives on NVMe: cut into pieces, read ahead and written back.
tr_status tr__pass_stage(tr_plan *plan, tr_error *err);
// Updates on the host that a step leaves to the next one.
tr_status tr__pass_defer(tr_plan *plan, tr_error *err);
// The layout of the step's statistics, and of what is measured for norms.
tr_status tr__pass_statistics(tr_plan *plan, tr_error *err);
// The inputs of recomputed units leave the device, and come back.
tr_status tr__pass_boundary(tr_plan *plan, tr_error *err);
// And what other units save for their backwards.
tr_status tr__pass_saved(tr_plan *plan, tr_error *err);
// Buffers that live always and belong to no flat buffer.
tr_status tr__pass_kept(tr_plan *plan, tr_error *err);
// Values are numbered by their first use; those that no step uses are dropped.
tr_status tr__pass_number(tr_plan *plan, tr_error *err);
// Who waits for whom, from what the steps access (access.h); and from that, from when
// to when each buffer lives.
tr_status tr__pass_schedule(tr_plan *plan, tr_error *err);
// Where each lies.
tr_status tr__pass_offsets(tr_plan *plan, tr_error *err);
// Is there a kernel for every launch? TR_USAGE names the op.
tr_status tr__pass_kernels(tr_plan *plan, tr_error *err);
// On a discrete device, who waits because values share memory.
tr_status tr__pass_reuse(tr_plan *plan, tr_error *err);
// The bytes that move in a step, and its FLOPs.
tr_status tr__pass_traffic(tr_plan *plan, tr_error *err);
// The bytes, by category.
tr_status tr__pass_ledger(tr_plan *plan, tr_error *err);

// Proves, from the steps alone and not from what the allocator thought, that no two
// buffers that live at the same time overlap, that none lies outside of the arena, and
// that nothing is read before it is written. TR_INTERNAL names the two.
tr_status tr__plan_check(const tr_plan *plan, tr_error *err);

// tr_plan_make without the proof: of a plan that is looked at, and not walked by an
// executor.
tr_status tr__plan_draft(const tr_plan_request *request, tr_plan **out, tr_error *err);
// Of a draft the units' programs, the flat buffers and the steps: nobody waits yet, and
// nothing has a place.
tr_status tr__plan_sketch(const tr_plan_request *request, tr_plan **out, tr_error *err);
// The same plan, not proved, as the rank of another stage of the pipeline has it whose
// other coordinates are the same.
tr_status tr__plan_of_stage(const tr_plan *plan, int64_t stage, tr_plan **out,
                            tr_error *err);
// tr_plan_make of any mesh, also where several ranks lie on an axis along which nothing
// is split yet: they all do the same work.
tr_status tr__plan_build(const tr_plan_request *request, tr_plan **out, tr_error *err);

#endif
