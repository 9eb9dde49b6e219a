// A step while a pass makes its payload (payload.h): what it does to which bytes of
// which values. What tr__make_* make is appended to the sequence that the pass edits.
#ifndef TR_PLAN_FLOW_MAKER_H
#define TR_PLAN_FLOW_MAKER_H

#include "plan/flow/editor.h"

// A place in a value of the plan; value -1: nowhere.
typedef struct tr_location {
    int32_t value;
    int64_t offset; // bytes
} tr_location;

// Bytes [first, end) of a value; value -1: none.
typedef struct tr_region {
    int32_t value;
    int64_t first, end;
} tr_region;

// The first `bytes` of a value; all of it.
tr_region tr__region(int32_t value, int64_t bytes);
tr_region tr__region_all(const tr_plan *plan, int32_t value);
// Elements [first, first + count) of a flat buffer, in what is kept of them.
tr_region tr__region_of_flat(const tr_flat_range *range, int64_t first, int64_t count,
                             int64_t element_bytes);
tr_location tr__location(tr_region region); // where it begins
// Double `at` of this rank's statistics of the step.
tr_location tr__in_statistics(const tr_plan *plan, int64_t at);

// ---- launches of ops

// One op of a launch, and where its operands lie.
typedef struct tr_op_draft {
    tr_op_desc desc;
    tr_location in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    bool contributes[TR_OP_OUT_MAX]; // adds, or writes where it is the first
} tr_op_draft;

// `attr` is copied; of 0 bytes it may be NULL. It has no padding: launches whose
// descriptions are the same byte by byte share a prepared op. The op's target is the
// device's or the host's, as the stream is.
tr_op_draft tr__op_draft(const tr_plan *plan, tr_stream stream, const tr_op *op,
                         const void *attr, size_t attr_bytes);
void tr__op_input(tr_op_draft *draft, tr_tensor_desc desc, tr_location at);
// Result `i` is written; is added to what is there. One that lies nowhere is left out.
void tr__op_writes(tr_op_draft *draft, int i, tr_tensor_desc desc, tr_location at);
void tr__op_adds(tr_op_draft *draft, int i, tr_tensor_desc desc, tr_location at);
// `count` elements in a row.
tr_tensor_desc tr__vector(tr_dtype dtype, int64_t count);

typedef struct tr_step_maker {
    tr_editor *editor;
    tr_plan_step step;
} tr_step_maker;

// A launch of ops begins, continues with one op after the other, and ends: then it is
// appended, and has its id. `work`: the value that is its working memory, -1: none.
tr_step_maker tr__make_launch(tr_editor *editor, tr_plan_step step, int32_t work);
void tr__make_op(tr_step_maker *maker, const tr_op_draft *op);
int32_t tr__make_end(tr_step_maker *maker);
// A launch of one op.
int32_t tr__make_one(tr_editor *editor, tr_plan_step step, int32_t work,
                     const tr_op_draft *op);

// ---- all other steps: their ids

// Both regions are of one size.
int32_t tr__make_copy(tr_editor *editor, tr_plan_step step, tr_region from,
                      tr_region to);
// From the region `stored` of the arena that the file is, or to it.
int32_t tr__make_read(tr_editor *editor, tr_plan_step step, tr_region stored,
                      tr_region memory);
int32_t tr__make_write(tr_editor *editor, tr_plan_step step, tr_region memory,
                       tr_region stored);
// Of all that ranks exchange, this rank's part.
tr_region tr__own_part(const tr_plan *plan, const tr_exchange *exchange, tr_region all);
// Where exchange.in_place, `send` is not looked at. `adds`: contributes to what `recv`
// holds; else it is written.
int32_t tr__make_exchange(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                          tr_region send, tr_region recv, bool adds);
// Sums over the ranks of the exchange what each has in the region, where it lies: each
// gets its part of the sum, and then all parts are gathered. Of the exchange are given:
// what is summed, between whom, and of which type; and the elements of a part, 0: all
// have as many. Of the step: whose it is, its stream and its guard. (Where other ranks
// wait for both halves, no interruption may leave one out.)
void tr__make_sum(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                  tr_region all);
// One half of that alone.
void tr__make_reduced(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                      tr_region all);
void tr__make_gathered(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                       tr_region all);
// So many bytes of each rank of the group, one after the other in one value, in which
// this rank's are at their place.
int32_t tr__make_gather(tr_editor *editor, tr_plan_step step, tr_part part,
                        tr_axes group, tr_region first);
// The micro-batch's slot of the data ring is taken, is given back.
int32_t tr__make_load(tr_editor *editor, int64_t micro);
int32_t tr__make_unload(tr_editor *editor, int64_t micro);
// The caller gets the micro-batch's outputs; in a training step it also gives their
// gradients, and its loss for the statistics. `gradients` is not looked at elsewhere.
int32_t tr__make_hand_out(tr_editor *editor, tr_plan_step step, tr_region outputs,
                          tr_region gradients);
// The host completes this rank's statistics; decides by those of all ranks.
int32_t tr__make_report(tr_editor *editor);
int32_t tr__make_decide(tr_editor *editor);

#endif
