// The update of a flat buffer, as steps that several passes insert: of elements [first,
// first + count) of it, which the step names; parts that are staged lie elsewhere than
// in their ranges.
#ifndef TR_PLAN_PASSES_STEPS_UPDATE_H
#define TR_PLAN_PASSES_STEPS_UPDATE_H

#include "plan/flow/maker.h"

enum { TR_STAGED_NOT = -2 };

// By part (tr_part): the value in which it is staged; -1: there is nothing of it;
// TR_STAGED_NOT: it is in its range.
typedef struct tr_staged {
    int32_t value[TR_PARTS];
} tr_staged;
tr_staged tr__nothing_staged(void);

// What the step's mark says: the update, or its first phase where that needs the norms
// of tensors.
int32_t tr__put_update(tr_editor *editor, tr_plan_step step, const tr_staged *staged);
// The same of a flat buffer of matrices that are taken as wholes: their directions,
// what ranks have of these, and the update. Nothing of it is staged.
int32_t tr__put_matrices(tr_editor *editor, tr_plan_step step, const tr_staged *staged);
// Adds up what this rank has measured of each tensor; and rounds that, of all ranks, to
// the tensor's norms.
int32_t tr__put_tensor_sums(tr_editor *editor, tr_plan_step step);
int32_t tr__put_tensor_norms(tr_editor *editor, tr_plan_step step);
// Where the updates begin, which end a sequence; its count: there are none.
size_t tr__first_update(const tr_sequence *sequence);
// Where those sums are: int64 [words].
tr_region tr__edit_tensor_sums(tr_editor *editor);

#endif
