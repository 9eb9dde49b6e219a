// Odd sizes, one element, one behind a whole number of vectors; a group of one rank.
#include "ops/cases.h"
#include "ops/nn/largest/largest.h"

#include <string.h>

extern const tr_case_list tr__cases_largest;

static const struct {
    tr_shape shape;
    float scale;
    uint32_t rows;
} found[] = {
    {{1, {1}}, 1, 0},           {{2, {3, 5}}, 1e-20f, 0}, {{3, {3, 7, 33}}, 1, 1},
    {{2, {65, 129}}, 1e3f, 0},  {{2, {4, 4096}}, 1, 1},   {{1, {257}}, 1, 0},
    {{2, {300, 1024}}, 0.5, 0},
};

enum { FOUND = sizeof found / sizeof *found };

static bool get_gathered(int count, tr_case *out) {
    const tr_gather_largest_attr attr = {.ranks = 1};
    *out = (tr_case){
        .name = "gather_largest", .op = &tr__op_gather_largest, .in_count = count};
    for (int i = 0; i < count; i++) {
        out->in[i] = (tr_case_input){.desc = {TR_F32, TR_SHAPE1(1)}};
    }
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

static bool get(int index, tr_case *out) {
    if (index >= FOUND) {
        int count = 1 + index - FOUND;
        return count <= TR_OP_IN_MAX && get_gathered(count, out);
    }
    const tr_largest_attr attr = {found[index].rows};
    *out = (tr_case){
        .name = "largest",
        .op = &tr__op_largest,
        .in_count = 1,
        .in = {{.desc = {TR_F32, found[index].shape}, .scale = found[index].scale}},
        .half_tolerance = 1};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_largest = {"largest", get};
