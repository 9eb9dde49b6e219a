// The gradient of a tied tensor over a rank's first wave, for the noise scale: where a
// step ever has it.
//
// Several units add to a tied tensor, and within a wave each of them adds all of the
// wave's micro-batches. So the first moment at which the accumulator holds the whole
// gradient of some micro-batches is the end of the first wave. Where stages of a
// pipeline each have the gradient of their own users, or where each use leaves by
// itself, it is kept beside: a copy, to which uses and stages add theirs.
#ifndef TR_PLAN_PASSES_FIRST_WAVE_H
#define TR_PLAN_PASSES_FIRST_WAVE_H

#include "plan/flow/maker.h"

// Why no moment of the step shows it, in words; NULL: one does.
const char *tr__first_wave_hidden(const tr_plan *plan, int flat);
// Is it kept beside the accumulator?
bool tr__first_wave_is_kept(const tr_plan *plan, int flat);

// The moments of a sequence at which it is there.
typedef struct tr_first_wave {
    tr_editor *editor;
    size_t *use;   // [units][TR_UNIT_FLATS_MAX] 1 + the use's last backward; 0: none
    size_t *last;  // [flats] the last of these
    int32_t *kept; // [flats] values, -1: none yet
} tr_first_wave;

// TR_MEMORY. Cleared in any case.
tr_status tr__first_wave_find(tr_editor *editor, tr_first_wave *out, tr_error *err);
void tr__first_wave_clear(tr_first_wave *first);
// Behind old step number `index`: a use, or the last one of what the flat's accumulator
// shows, of the unit's flat buffer k.
bool tr__first_wave_comes(const tr_first_wave *first, size_t index, int k);
// The gradients as the backward has left them.
int32_t tr__first_wave_gradient(const tr_first_wave *first, int flat);
// Adds it to what is kept.
void tr__first_wave_keep(const tr_first_wave *first, int flat);
// Before the norm: the owner's stage gets that of all stages.
void tr__first_wave_sum(const tr_first_wave *first, int flat);

#endif
