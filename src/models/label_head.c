#include "models/label_head.h"

#include <math.h>
#include <stdio.h>

void tr__label_head(tr_graph *g, const tr_label_head *head,
                    const tr_task_labels *labels, tr_value x, tr_value targets) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", head->name);
    snprintf(bias, sizeof bias, "%s.bias", head->name);
    tr_value w =
        tr_graph_param(g, weight, TR_SHAPE2(labels->count, head->width), head->init);
    tr_value b = head->biased ? tr_graph_param(g, bias, TR_SHAPE1(labels->count),
                                               (tr_init){TR_INIT_CONSTANT, 0, 0})
                              : TR_NO_VALUE;
    if (labels->kind == TR_LABELS_CLASS) {
        tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, w, b, targets);
        return;
    }
    tr_element_loss(
        g, labels->kind == TR_LABELS_SET ? TR_ELEMENTS_BINARY : TR_ELEMENTS_SQUARE,
        tr_linear(g, TR_LINEAR_OUT_IN, x, w, b), targets);
}

// CLIP's name, and its shape.
static tr_value logit_scale(tr_graph *g, const tr_contrastive_way *way) {
    const tr_init init = {TR_INIT_CONSTANT, (float)-log(way->temperature), 0};
    return way->learned && way->texts > 0
               ? tr_graph_param(g, "logit_scale", (tr_shape){0}, init)
               : TR_NO_VALUE;
}

void tr__embedding_head(tr_graph *g, const tr_task_settings *task, tr_value x,
                        tr_value targets) {
    const tr_contrastive_way *way = &task->contrast;
    const tr_contrastive_options options = {.symmetric = way->symmetric,
                                            .mask_equal = way->mask_equal,
                                            .temperature = way->temperature,
                                            .groups = way->groups};
    x = task->embedding.normalize ? tr_normalize(g, x) : x;
    tr_contrastive(g, x, targets, logit_scale(g, way), &options);
}

void tr__text_head(tr_graph *g, const tr_task_settings *task, tr_value x,
                   tr_init init) {
    bool classifies = task->task == TR_TASK_CLASSIFICATION;
    tr_value labels = tr_graph_data(g, "labels");
    int texts = (int)tr_graph_desc(g, labels).shape.dim[1];
    tr_shape shape = tr_graph_desc(g, x).shape;
    x = tr_text_pool(g, x, classifies ? TR_TEXT_LAST : task->embedding.pooling, texts);
    if (classifies) {
        const tr_label_head head = {"score", false, shape.dim[2], init};
        tr__label_head(g, &head, &task->labels, x, labels);
    } else {
        tr__embedding_head(g, task, x, labels);
    }
}
