// A folder of Llama's whose layers are in 4 bits, as bitsandbytes saves them.
#ifndef TESTS_TRAIN_RANKS_SAVED_BITS_H
#define TESTS_TRAIN_RANKS_SAVED_BITS_H

#include <tranche/extend/op.h>

// kind: NF4 or NF4_DOUBLE. base: the folder with the same in f32.
void save_in_bits(const char *base, tr_quantization kind, const char *folder);

#endif
