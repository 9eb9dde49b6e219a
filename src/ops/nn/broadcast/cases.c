#include "ops/cases.h"
#include "ops/nn/broadcast/broadcast.h"

#include <string.h>

extern const tr_case_list tr__cases_broadcast;

// The larger tensor is [batch, outer, times, inner].
static const struct {
    int64_t batch, outer;
    int32_t times;
    int64_t inner;
    float scale;
} cases[] = {
    {1, 1, 1, 1, 1},     {2, 3, 4, 5, 0.5f},     {3, 2, 7, 1, 1},
    {2, 1, 5, 17, 0.2f}, {2, 5, 300, 33, 0.01f}, {3, 4, 515, 1, -1},
};

static bool get(int index, tr_case *out) {
    int count = (int)(sizeof cases / sizeof cases[0]);
    if (index < 0 || index >= 4 * count) {
        return false;
    }
    int64_t batch = cases[index % count].batch, outer = cases[index % count].outer;
    int64_t times = cases[index % count].times, inner = cases[index % count].inner;
    tr_broadcast_attr attr = {(int32_t)times, cases[index % count].scale};
    *out = (tr_case){
        .in_count = 1,
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = times * inner < 50 ? 1e-3 : 0,
    };
    if (index < count) {
        out->name = "expand";
        out->op = &tr__op_expand;
        out->in[0].desc = (tr_tensor_desc){TR_F32, TR_SHAPE3(batch, outer, inner)};
    } else if (index < 2 * count) {
        out->name = "sum";
        out->op = &tr__op_sum;
        out->in[0].desc =
            (tr_tensor_desc){TR_F32, TR_SHAPE4(batch, outer, times, inner)};
    } else if (index < 3 * count) {
        out->name = "repeat";
        out->op = &tr__op_repeat;
        out->in_count = 2;
        attr.scale = 1;
        out->in[0].desc = (tr_tensor_desc){TR_F32, TR_SHAPE2(outer, inner)};
        out->in[1].desc = (tr_tensor_desc){TR_F32, TR_SHAPE2(batch, inner)};
        if (index % 2) {
            out->in[1].desc.dtype = TR_I32;
            out->in[1].fill = TR_FILL_INDEX;
            out->in[1].bound = 7;
        }
    } else {
        out->name = "repeat backward";
        out->op = &tr__op_repeat_backward;
        out->in_count = 2;
        attr.scale = 1;
        out->gradient_tolerance = 0;
        out->in[0].desc =
            (tr_tensor_desc){TR_F32, TR_SHAPE3(batch, times, outer * inner)};
        out->in[1].desc = (tr_tensor_desc){TR_F32, TR_SHAPE2(outer, inner)};
    }
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_broadcast = {"broadcast", get};
