// How parts of wave tensors become one (wave.h): each rank packs its own, ranks gather
// them, and each rank merges them.
#ifndef TR_PLAN_PASSES_STEPS_WAVE_H
#define TR_PLAN_PASSES_STEPS_WAVE_H

#include "plan/flow/maker.h"
#include "plan/flow/wave.h"

void tr__put_wave_merge(tr_editor *editor, tr_wave_segment of);

#endif
