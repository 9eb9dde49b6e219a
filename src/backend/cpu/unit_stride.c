#include "backend/cpu/unit_stride.h"

#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"

#include <string.h>

enum { BLOCK_AVX512 = 16 }; // oneDNN's block of channels

bool tr__unit_stride_wanted(const tr_conv_desc *d) {
    bool harmless = tr__cpu_isa() == TR_ISA_AVX512 && d->in_channels >= BLOCK_AVX512;
    return !harmless && d->kind == TR_CONV_WEIGHT && d->kernel_h == 1 &&
           d->kernel_w == 1 && d->padding == 0 && d->stride > 1 &&
           d->out_h * d->stride == d->in_h && d->out_w * d->stride == d->in_w;
}

tr_conv_desc tr__unit_stride_desc(const tr_conv_desc *desc) {
    tr_conv_desc unit = *desc;
    unit.in_h = desc->out_h;
    unit.in_w = desc->out_w;
    unit.stride = 1;
    return unit;
}

typedef struct copy {
    const tr_conv_desc *desc;
    const float *image;
    float *pixels;
} copy;

// A part of the rows of all images.
static void copy_rows(const void *work, int part, int parts) {
    const copy *c = work;
    const tr_conv_desc *d = c->desc;
    size_t channels = (size_t)d->in_channels;
    tr_range rows = tr__range_part(d->batch * d->out_h, 1, part, parts);
    for (int64_t row = rows.begin; row < rows.end; row++) {
        // Images follow each other, and out_h * stride rows are one.
        const float *from = c->image + row * d->stride * d->in_w * d->in_channels;
        float *to = c->pixels + row * d->out_w * d->in_channels;
        for (int64_t column = 0; column < d->out_w; column++) {
            memcpy(to, from, channels * sizeof *to);
            to += d->in_channels;
            from += d->stride * d->in_channels;
        }
    }
}

void tr__unit_stride_copy(const tr_conv_desc *desc, const float *image, float *pixels) {
    copy c = {desc, image, pixels};
    int64_t count = desc->batch * desc->out_h * desc->out_w * desc->in_channels;
    tr__parts_run(tr__threads_for(count, 1, desc->threads), copy_rows, &c);
}
