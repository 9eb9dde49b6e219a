// The pixels of images that a convolution by 1 x 1 with a stride reads.
#ifndef TR_BACKEND_CPU_UNIT_STRIDE_H
#define TR_BACKEND_CPU_UNIT_STRIDE_H

#include "backend/cpu/conv.h"

// Must the weight's gradient be computed from a copy of such pixels?  Where the stride
// divides the image, oneDNN (2.6 to 3.8 at least) makes that copy itself, row by row of
// the image, and mistakes the width of the rows that it has copied: it takes a block of
// channels, 16 with AVX-512 and 8 without, for all of them. With AVX-512 the mistake
// is harmless from 16 channels of f32 on. Elsewhere oneDNN writes past the end of its
// scratch memory, and reads rows that it has overwritten.
bool tr__unit_stride_wanted(const tr_conv_desc *desc);
// The same convolution of that copy, [batch, out_h, out_w, in_channels].
tr_conv_desc tr__unit_stride_desc(const tr_conv_desc *desc);
// Makes the copy. image: [batch, in_h, in_w, in_channels].
void tr__unit_stride_copy(const tr_conv_desc *desc, const void *image, void *pixels);

#endif
