#include "backend/cpu/unit_stride.h"

#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"

#include <string.h>

enum { BLOCK_AVX512 = 16 }; // oneDNN's block of channels

bool tr__unit_stride_wanted(const tr_conv_desc *d) {
    bool harmless = tr__cpu_isa() == TR_ISA_AVX512 && d->type == TR_F32 &&
                    d->in_channels >= BLOCK_AVX512;
    return !harmless && d->kind == TR_CONV_WEIGHT && d->kernel_h == 1 &&
           d->kernel_w == 1 && d->padding[0] == 0 && d->padding[1] == 0 &&
           (d->stride[0] > 1 || d->stride[1] > 1) &&
           d->out_h * d->stride[0] == d->in_h && d->out_w * d->stride[1] == d->in_w;
}

tr_conv_desc tr__unit_stride_desc(const tr_conv_desc *desc) {
    tr_conv_desc unit = *desc;
    unit.in_h = desc->out_h;
    unit.in_w = desc->out_w;
    unit.stride[0] = unit.stride[1] = 1;
    return unit;
}

typedef struct copy {
    const tr_conv_desc *desc;
    const char *image;
    char *pixels;
    size_t pixel; // bytes of one
} copy;

// A part of the rows of all images.
static void copy_rows(const void *work, int part, int parts) {
    const copy *c = work;
    const tr_conv_desc *d = c->desc;
    tr_range rows = tr__range_part(d->batch * d->out_h, 1, part, parts);
    for (int64_t row = rows.begin; row < rows.end; row++) {
        // Images follow each other, and out_h * stride rows are one.
        const char *from = c->image + (size_t)(row * d->stride[0] * d->in_w) * c->pixel;
        char *to = c->pixels + (size_t)(row * d->out_w) * c->pixel;
        for (int64_t column = 0; column < d->out_w; column++) {
            memcpy(to, from, c->pixel);
            to += c->pixel;
            from += (size_t)d->stride[1] * c->pixel;
        }
    }
}

void tr__unit_stride_copy(const tr_conv_desc *desc, const void *image, void *pixels) {
    copy c = {desc, image, pixels,
              (size_t)desc->in_channels * tr_dtype_bytes(desc->type)};
    int64_t count = desc->batch * desc->out_h * desc->out_w * desc->in_channels;
    tr__parts_run(tr__threads_for(count, 1, desc->threads), copy_rows, &c);
}
