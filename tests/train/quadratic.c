#include "quadratic.h"

#include "samples.h"
#include "trial.h"

#include <math.h>
#include <string.h>

// ---- the loss

static tr_status infer_loss(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    (void)node;
    (void)err;
    out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    *out_count = 1;
    return TR_OK;
}

static tr_status infer_backward(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    (void)err;
    out[0] = node->in[1];
    out[1] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    *out_count = 2;
    return TR_OK;
}

static void add_sums(const tr_launch *launch, int64_t rows, int64_t width,
                     double *sums) {
    const float *x = launch->in[0], *w = launch->in[1];
    const int32_t *target = launch->in[2];
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < width && target[r] >= 0; c++) {
            double away = (double)w[c] - x[r * width + c];
            sums[TR_SUM_LOSS] += away * away / 2;
        }
        sums[TR_SUM_COUNT] += target[r] >= 0;
    }
}

static void launch_loss(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    add_sums(launch, desc->in[0].shape.dim[0], desc->in[0].shape.dim[1],
             launch->out[0]);
}

// in: x [B, C], w [C], targets [B]   out: dw [C], the sums
static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    const float *x = launch->in[0], *w = launch->in[1];
    const int32_t *target = launch->in[2];
    float *dw = launch->out[0];
    (void)state;
    for (int64_t c = 0; c < width; c++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += target[r] >= 0 ? (double)w[c] - x[r * width + c] : 0;
        }
        dw[c] = (launch->accumulate & 1 ? dw[c] : 0) +
                (float)(sum * launch->run->loss_seed);
    }
    add_sums(launch, rows, width, launch->out[1]);
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static const tr_kernel loss_kernel = {
    .name = "quadratic", .supports = is_f32, .launch = launch_loss};
static const tr_kernel backward_kernel = {
    .name = "quadratic_backward", .supports = is_f32, .launch = launch_backward};
static const tr_op op_backward = {.name = "quadratic_backward",
                                  .infer = infer_backward,
                                  .reference = &backward_kernel};

static int rules(const tr_op_node *node, tr_rule out[TR_OP_RULES_MAX]) {
    (void)node;
    out[0] = (tr_rule){.op = &op_backward,
                       .in = {TR_IN(0), TR_IN(1), TR_IN(2)},
                       .out = {TR_GRAD_IN(1), TR_OUT(0)}};
    return 1;
}

static const tr_op op_loss = {
    .name = "quadratic",
    .flags = TR_OP_LOSS,
    .no_gradient = 1 << 0 | 1 << 2,
    .infer = infer_loss,
    .backward = rules,
    .reference = &loss_kernel,
};

static void build(tr_graph *graph, const void *config) {
    tr_init zero = {TR_INIT_CONSTANT, 0, 0};
    (void)config;
    tr_value in[] = {tr_graph_data(graph, "features"),
                     tr_graph_param(graph, "w", TR_SHAPE1(QUADRATIC_WIDTH), zero),
                     tr_graph_data(graph, "labels")};
    tr_graph_op(graph, &op_loss, NULL, in, 3, NULL);
}

static const tr_model_unit units[] = {{"only", "only", "only.", build, NULL}};

const tr_model quadratic_model = {
    .size = sizeof(tr_model),
    .type = "quadratic",
    .unit_count = 1,
    .units = units,
    .batch = {2,
              {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(QUADRATIC_WIDTH)}},
               {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}},
    .classes = 1,
};

// ---- the samples

static double mean_of(int64_t c) {
    return 0.1 * (double)(c % 5) - 0.2;
}

static double deviation_of(int64_t c) {
    return 0.3 + 0.2 * (double)(c % 4);
}

double quadratic_gradient(void) {
    double sum = 0;
    for (int64_t c = 0; c < QUADRATIC_WIDTH; c++) {
        sum += mean_of(c) * mean_of(c);
    }
    return sum;
}

double quadratic_trace(void) {
    double sum = 0;
    for (int64_t c = 0; c < QUADRATIC_WIDTH; c++) {
        sum += deviation_of(c) * deviation_of(c);
    }
    return sum;
}

// Box and Muller, "A note on the generation of random normal deviates", 1958.
static double normal(uint64_t *state) {
    double u = (double)(test_random(state) >> 11) * 0x1p-53 + 0x1p-54;
    double v = (double)(test_random(state) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    float *x = rows[0];
    (void)user;
    (void)err;
    memset(rows[1], 0, (size_t)count * sizeof(int32_t));
    for (int64_t i = 0; i < count; i++) {
        uint64_t state = (uint64_t)index[i] * UINT64_C(0x9e3779b97f4a7c15) + 7;
        for (int64_t c = 0; c < QUADRATIC_WIDTH; c++) {
            x[i * QUADRATIC_WIDTH + c] =
                (float)(mean_of(c) + deviation_of(c) * normal(&state));
        }
    }
    return TR_OK;
}

tr_dataset *quadratic_data(int64_t count) {
    tr_error err = {0};
    tr_dataset *data = NULL;
    tr_dataset_source source = {.size = sizeof(tr_dataset_source),
                                .samples = count,
                                .tensors = tr_batch_features(QUADRATIC_WIDTH),
                                .classes = 1,
                                .hash = 1,
                                .read = read_rows};
    trial_ok(tr_dataset_create_callback(&source, &data, &err), &err);
    return data;
}
