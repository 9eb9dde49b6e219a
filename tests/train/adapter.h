// Rows of rewrites as a program brings them: low-rank adapters (Hu et al., LoRA, arXiv
// 2106.09685) beside the second linear layer of one of the own model's units.
#ifndef TESTS_TRAIN_ADAPTER_H
#define TESTS_TRAIN_ADAPTER_H

#include <tranche/extend/rewrite.h>

#define ADAPTER_DOWN "second.after.lora_A"
#define ADAPTER_UP   "second.after.lora_B"

// y = x W^T + b + 1.5 dropout(x A^T) B^T. B begins at 0, so that y is what it was.
extern const tr_rewrite adapter_rows[];
// The same without dropout, with a B that begins drawn.
extern const tr_rewrite adapter_rows_drawn[];

#endif
