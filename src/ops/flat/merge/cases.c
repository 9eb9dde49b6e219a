#include "ops/cases.h"
#include "ops/flat/merge/merge.h"
#include "ops/nn/batch_norm/batch_norm.h"

#include <string.h>

extern const tr_case_list tr__cases_merge, tr__cases_pack;

// A block, and where in its rows the parts lie.
typedef struct block {
    int64_t rows, width, first;
    tr_shape shape; // of a part
} block;

static const block blocks[] = {
    {1, 1, 0, {1, {1}}},      {2, 12, 3, {2, {3, 2}}},    {5, 17, 0, {1, {17}}},
    {3, 64, 40, {2, {3, 8}}}, {7, 640, 8, {2, {3, 200}}},
};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

// Sums of f32 and of f64, and statistics where the part is one; written and added to.
static bool get_merge(int index, tr_case *out) {
    static const char *const names[] = {"f32", "f64", "statistics"};
    if (index < 0 || index >= 2 * 3 * BLOCKS) {
        return false;
    }
    const block *b = &blocks[index % BLOCKS];
    int kind = index / BLOCKS % 3;
    bool statistics = kind == 2 && b->shape.rank == 2;
    tr_merge_attr attr = {statistics ? &tr__op_batch_stat : NULL, b->first, b->shape};
    tr_dtype dtype = kind == 0 ? TR_F32 : TR_F64;
    *out = (tr_case){
        .name = names[kind],
        .op = &tr__op_merge,
        .in_count = 1,
        .in = {{.desc = {dtype, TR_SHAPE2(b->rows, b->width)},
                .fill = statistics ? TR_FILL_POSITIVE : TR_FILL_NORMAL}},
        .added = index >= 3 * BLOCKS,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

static bool get_pack(int index, tr_case *out) {
    static const tr_dtype types[] = {TR_F32, TR_F64, TR_I64};
    if (index < 0 || index >= 3 * BLOCKS) {
        return false;
    }
    const block *b = &blocks[index % BLOCKS];
    tr_dtype dtype = types[index / BLOCKS];
    tr_pack_attr attr = {b->first, tr_shape_count(b->shape)};
    *out = (tr_case){
        .name = tr_dtype_name(dtype),
        .op = &tr__op_pack,
        .in_count = 1,
        .in = {{.desc = {dtype, TR_SHAPE2(b->rows, b->width)}}},
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_merge = {"merge", get_merge};
const tr_case_list tr__cases_pack = {"pack", get_pack};
