// A case of an op as it is where nothing is trained.
#ifndef TESTS_OPS_ASKED_H
#define TESTS_OPS_ASKED_H

#include "ops/cases.h"

#include <tranche/extend/rewrite.h>

// Writes the case of what stands in the op's place in evaluations and, where it is a
// loss, in the variant `loss` (TR_REWRITE_LOGITS or TR_REWRITE_ALL_LOGITS), on the same
// operands. false: nothing else does.
bool test_asked(const tr_case *the_case, tr_rewrite_variant loss, tr_case *out);

#endif
