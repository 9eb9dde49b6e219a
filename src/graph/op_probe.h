// One node whose op and whose backward's ops run by their references on operands with
// guard zones, for tr_op_check.
#ifndef TR_GRAPH_OP_PROBE_H
#define TR_GRAPH_OP_PROBE_H

#include <tranche/extend/op_check.h>

// A tensor with zones around it.
typedef struct tr_box {
    tr_tensor_desc desc; // dtype TR_NONE: absent
    unsigned char *block, *data;
    size_t bytes, guard; // of the tensor, of each zone
    bool there;          // holds a value, to which a launch adds
} tr_box;

typedef struct tr_probe {
    const tr_op *op;
    const void *attr;
    int in_count, out_count;
    tr_box in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_box grad_in[TR_OP_IN_MAX], grad_out[TR_OP_OUT_MAX], temp[TR_OP_TEMPS_MAX];
    unsigned char fill; // of guard zones, and of results before they are written
} tr_probe;

// Makes the operands and fills the inputs. TR_USAGE: the op refuses them. The caller
// closes the probe in any case.
tr_status tr__probe_open(tr_probe *p, const tr_op_check_input *in, tr_error *err);
void tr__probe_close(tr_probe *p);

// The op, all outputs from nothing.
tr_status tr__probe_forward(tr_probe *p, tr_error *err);
// The rules of the backward, from gradients of the outputs that are the same in every
// probe. add: gradients of inputs are added to ones.
tr_status tr__probe_backward(tr_probe *p, bool add, tr_error *err);

// Bits of the inputs whose gradients rules write, and of the outputs whose gradients
// they read.
tr_status tr__probe_rules(const tr_probe *p, uint32_t *written, uint32_t *read,
                          tr_error *err);

// Element i of f32 or f64.
double tr__box_get(const tr_box *box, int64_t i);
void tr__box_put(tr_box *box, int64_t i, double x);

// What every launch is told, loss_seed among it.
extern const tr_run_context tr__probe_context;

#endif
