#include "ops/optimizers/state_types.h"

#include "ops/optimizers/optimizer.h"

static const tr_state_format formats[TR_STATE_TYPES] = {
    [TR_STATE_F32] = {.name = "f32", .dtype = TR_F32, .packing = {1, sizeof(float)}},
    [TR_STATE_BF16] = {.name = "bf16", .dtype = TR_BF16, .packing = {1, 2}},
    [TR_STATE_I8] = {.name = "int8", .dtype = TR_U8, .packing = {256, 260}},
    [TR_STATE_U8] = {.name = "int8", .dtype = TR_U8, .packing = {256, 260}},
};

const tr_state_format *tr__state_format(tr_state_type type) {
    return &formats[type];
}

bool tr__update_is_packed(const tr_update *update) {
    bool packed = false;
    for (int s = 0; s < TR_OPTIMIZER_STATES; s++) {
        packed = packed || (update->state[s] && update->type[s] != TR_STATE_F32);
    }
    return packed;
}
