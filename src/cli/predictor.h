// What tranche predict prints of a sample.
#ifndef CLI_PREDICTOR_H
#define CLI_PREDICTOR_H

#include <tranche/sample.h>

typedef struct cli_predictor {
    const tr_model *model;
    int64_t width; // classes, or labels
    bool json;
    double *numbers; // [width], to work in
} cli_predictor;

// The first line of csv.
void cli_predictor_head(const cli_predictor *p);
// A line for the sample. logits: [width]. TR_MEMORY.
tr_status cli_predictor_row(const cli_predictor *p, int64_t sample, const float *logits,
                            tr_error *err);

#endif
