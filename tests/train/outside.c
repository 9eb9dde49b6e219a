#include "outside.h"

#include "base/half.h"
#include "samples.h"

#include <math.h>
#include <string.h>

void outside_fill(outside_data *data) {
    uint64_t seed = 5;
    for (int s = 0; s < OUTSIDE_SAMPLES; s++) {
        for (int i = 0; i < OWN_FEATURES; i++) {
            data->x[s][i] = (float)test_between(&seed, -64, 64) / 32;
        }
        data->label[s] = (int32_t)test_between(&seed, 0, OWN_CLASSES - 1);
    }
}

static tr_status read_samples(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const outside_data *data = user;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        memcpy((float *)rows[0] + i * OWN_FEATURES, data->x[index[i]],
               sizeof data->x[0]);
        ((int32_t *)rows[1])[i] = data->label[index[i]];
    }
    return TR_OK;
}

tr_dataset *outside_dataset(outside_data *data) {
    own_model own;
    tr_dataset *made = NULL;
    tr_error err = {0};
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    own_model_make(&own, false, 0);
    source.samples = OUTSIDE_SAMPLES;
    source.tensors = own.model.batch;
    source.classes = OWN_CLASSES;
    source.read = read_samples;
    source.user = data;
    return tr_dataset_create_callback(&source, &made, &err) == TR_OK ? made : NULL;
}

static float logit_at(const tr_output *logits, int64_t i) {
    const uint16_t *half = logits->data;
    return logits->desc.dtype == TR_BF16  ? tr__bf16_to_f32(half[i])
           : logits->desc.dtype == TR_F16 ? tr__f16_to_f32(half[i])
                                          : ((const float *)logits->data)[i];
}

double outside_loss(const tr_output *logits, const int32_t *labels, float *gradient) {
    int64_t rows = logits->desc.shape.dim[0];
    double loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        double p[OWN_CLASSES], total = 0, top = -INFINITY;
        for (int c = 0; c < OWN_CLASSES; c++) {
            p[c] = logit_at(logits, r * OWN_CLASSES + c);
            top = fmax(top, p[c]);
        }
        for (int c = 0; c < OWN_CLASSES; c++) {
            total += exp(p[c] - top);
        }
        loss += top + log(total) - p[labels[r]];
        for (int c = 0; c < OWN_CLASSES; c++) {
            double wrong = exp(p[c] - top) / total - (c == labels[r]);
            gradient[r * OWN_CLASSES + c] = (float)(wrong / (double)rows);
        }
    }
    return loss / (double)rows;
}

tr_status outside_micro(tr_engine *engine, const outside_data *data, int64_t first,
                        int64_t rows, double *loss, tr_error *err) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    float gradient[OUTSIDE_ROWS * OWN_CLASSES];
    const void *inputs[] = {data->x[first]};
    options.inputs = inputs;
    options.rows = rows;
    tr_status status = tr_engine_forward(engine, &options, &outputs, err);
    if (status != TR_OK) {
        return status;
    }
    if (outputs.count == 0) { // they are on the last stage of a pipeline
        return tr_engine_backward(engine, NULL, 0, err);
    }
    double mean = outside_loss(&outputs.output[0], data->label + first, gradient);
    if (loss) {
        *loss = mean;
    }
    const float *const gradients[] = {gradient};
    return tr_engine_backward(engine, gradients, mean, err);
}

tr_status outside_step(tr_engine *engine, const outside_data *data, int64_t first,
                       int64_t g, int64_t m, tr_step_result *result, tr_error *err) {
    tr_status status = TR_OK;
    for (int64_t j = 0; j < g && status == TR_OK; j++) {
        status = outside_micro(engine, data, first + j * m, m, NULL, err);
    }
    return status == TR_OK ? tr_engine_update(engine, result, err) : status;
}
