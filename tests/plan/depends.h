// What in a plan has to come after what.
#ifndef TEST_PLAN_DEPENDS_H
#define TEST_PLAN_DEPENDS_H

#include "plan/flow/access.h"

bool test_is_compute(const tr_plan_step *step); // work of a unit on a micro-batch
bool test_is_ring(const tr_plan_step *step);    // a load or unload of data
// A norm that has nothing to square, since all gradients have left for NVMe; a measure
// of a flat buffer without parameters.
bool test_is_idle(const tr_plan *plan, const tr_plan_step *step);
// Must step `later` of the sequence come after step `step`? accesses: of the sequence.
bool test_depends(const tr_plan *plan, tr_sequence_kind kind,
                  const tr_accesses *accesses, size_t step, size_t later);
// May two buffers have the same memory, though their lifetimes meet? A lifetime ends
// with the step that waits for the last one to use the buffer. That step itself may use
// the memory for another buffer, and so may the next step of the last one's stream.
bool test_never_meet(const tr_plan *plan, int a, int b);
// How many steps of the stream are done when the last before step `i` is, which works
// on a buffer that the step names.
int32_t test_needed(const tr_plan *plan, const tr_sequence *sequence, size_t i,
                    tr_stream stream);
bool test_is_cut(const tr_plan_step *step); // works on elements that it names

#endif
