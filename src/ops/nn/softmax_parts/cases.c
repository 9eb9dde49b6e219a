#include "ops/cases.h"
#include "ops/nn/softmax_parts/softmax_parts.h"

#include <string.h>

extern const tr_case_list tr__cases_softmax_parts, tr__cases_softmax_parts_join;

// The first rank, one in the middle, the last; one alone.
static const struct {
    tr_shape running;
    int64_t ranks, rank;
} parts[] = {
    {{2, {1, 2}}, 1, 0},
    {{2, {5, 2}}, 2, 0},
    {{3, {3, 7, 2}}, 3, 1},
    {{3, {2, 65, 2}}, 8, 7},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof parts / sizeof parts[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "a rank's part",
        .op = &tr__op_softmax_part,
        .in_count = 2,
        .in = {{.desc = {TR_F64, parts[index].running}},
               {.desc = {TR_F32, parts[index].running}}},
        .tolerance = 0,
        .gradient_tolerance = 1e-3,
    };
    tr_softmax_part_attr attr = {parts[index].ranks, parts[index].rank};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_softmax_parts = {"softmax_part", get};

static bool get_join(int index, tr_case *out) {
    static const tr_shape shapes[] = {
        {2, {1, 5}}, {2, {5, 10}}, {3, {3, 7, 15}}, {3, {2, 65, 40}}};
    if (index < 0 || index >= (int)(sizeof shapes / sizeof shapes[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "all ranks' parts",
        .op = &tr__op_softmax_join,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shapes[index]}}},
        .tolerance = 1e-12,
        .gradient_tolerance = 0, // the best logit jumps
    };
    return true;
}

const tr_case_list tr__cases_softmax_parts_join = {"softmax_join", get_join};
