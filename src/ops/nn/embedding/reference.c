#include "ops/nn/embedding/embedding.h"
#include "ops/nn/embedding/support.h"

extern const tr_kernel tr__embedding_reference, tr__embedding_backward_reference;

static void embedding(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const int32_t *ids = launch->in[0]; // [B, S]
    const float *wte = launch->in[1];   // [V, C]
    // [P, C] or NULL
    const float *wpe = tr__embedding_adds_positions(desc) ? launch->in[2] : NULL;
    const float *before = launch->in[3]; // [B, S, C] or NULL
    const int32_t *positions = tr__launch_positions(desc, launch, 4);
    float *y = launch->out[0]; // [B, S, C]
    int64_t rows = tr_shape_count(desc->in[0].shape);
    int64_t length = desc->in[0].shape.dim[1], width = desc->in[1].shape.dim[1];
    for (int64_t row = 0; row < rows; row++) {
        int64_t token = tr__embedding_row(desc, desc->in[1].shape.dim[0], ids[row]);
        for (int64_t c = 0; c < width; c++) {
            float value = before ? before[row * width + c] : 0;
            value += token >= 0 ? wte[token * width + c] : 0;
            int64_t position =
                tr__embedding_position(positions, launch->run->position, length, row);
            value += wpe ? wpe[position * width + c] : 0;
            float *to = y + row * width + c;
            *to = launch->accumulate & 1 ? *to + value : value;
        }
    }
}

// The sum of dy[row, c] over the rows whose id trains row `token` of the table.
static double sum_of_token(const tr_op_desc *desc, const tr_launch *launch,
                           int64_t token, int64_t c) {
    const float *dy = launch->in[0];
    const int32_t *ids = launch->in[1];
    int64_t rows = tr_shape_count(desc->in[1].shape);
    int64_t tokens = desc->in[2].shape.dim[0], width = desc->in[2].shape.dim[1];
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        bool same = tr__embedding_trained(desc, tokens, ids[row]) == token;
        sum += same ? (double)dy[row * width + c] : 0;
    }
    return sum;
}

// The sum of dy[row, c] over the rows at a position.
static double sum_of_position(const tr_op_desc *desc, const tr_launch *launch,
                              int64_t position, int64_t c) {
    const float *dy = launch->in[0];
    const int32_t *positions = tr__launch_positions(desc, launch, 4);
    int64_t rows = tr_shape_count(desc->in[1].shape);
    int64_t length = desc->in[1].shape.dim[1], width = desc->in[2].shape.dim[1];
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        bool same = tr__embedding_position(positions, 0, length, row) == position;
        sum += same ? (double)dy[row * width + c] : 0;
    }
    return sum;
}

static void store(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void embedding_backward(const tr_op_desc *desc, void *state,
                               const tr_launch *launch) {
    (void)state;
    float *dwte = launch->out[0]; // [V, C] or NULL
    float *dwpe = launch->out[1]; // [P, C] or NULL
    int64_t width = desc->in[2].shape.dim[1];
    for (int64_t v = 0; dwte && v < desc->in[2].shape.dim[0]; v++) {
        for (int64_t c = 0; c < width; c++) {
            store(&dwte[v * width + c], sum_of_token(desc, launch, v, c),
                  launch->accumulate & 1);
        }
    }
    for (int64_t p = 0; dwpe && p < desc->in[3].shape.dim[0]; p++) {
        for (int64_t c = 0; c < width; c++) {
            store(&dwpe[p * width + c], sum_of_position(desc, launch, p, c),
                  launch->accumulate & 2);
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__embedding_supports(desc, 0, TR_F32);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__embedding_supports(desc, 1, TR_F32);
}

const tr_kernel tr__embedding_reference = {
    .name = "embedding.reference",
    .supports = supports,
    .cost = tr__embedding_cost,
    .launch = embedding,
};

const tr_kernel tr__embedding_backward_reference = {
    .name = "embedding_backward.reference",
    .supports = supports_backward,
    .cost = tr__embedding_backward_cost,
    .launch = embedding_backward,
};
