// What shape rules must refuse.
#include "ops/conformance.h"
#include "ops/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct refusals {
    const tr_op *op;
    int index;
    tr_op_node view;
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    int failed;
    int mismatches; // of shapes that were refused, in all cases
    bool several;   // some case has several inputs
} refusals;

// Is the node refused? When it is, the message must name the op.
static bool is_refused(refusals *r) {
    tr_tensor_desc out[TR_OP_OUT_MAX];
    tr_error err = {0};
    int count = 0;
    if (r->op->infer(&r->view, out, &count, &err) == TR_OK) {
        return false;
    }
    if (err.status != TR_USAGE || !strstr(err.message, r->op->name)) {
        print_error("%s, case %d: the message is '%s'\n", r->op->name, r->index,
                    err.message);
        r->failed++;
    }
    return true;
}

static void must_refuse(refusals *r, const char *what, int i) {
    if (!is_refused(r)) {
        print_error("%s, case %d: %s of input %d is not refused\n", r->op->name,
                    r->index, what, i);
        r->failed++;
    }
}

static void spoil_input(refusals *r, int i) {
    tr_tensor_desc good = r->in[i];
    int last = good.shape.rank - 1;
    r->in[i].dtype = TR_I8;
    must_refuse(r, "the data type", i);
    r->in[i] = good;
    if (last < 0) {
        return; // a number has no dimension to spoil
    }
    r->in[i].shape.dim[last] = 0;
    must_refuse(r, "an empty dimension", i);
    r->in[i] = good;
    r->in[i].shape = (tr_shape){0};
    must_refuse(r, "a missing shape", i);
    r->in[i] = good;
    r->in[i].shape.dim[last]++;
    r->mismatches += is_refused(r);
    r->in[i] = good;
}

static void spoil_case(refusals *r, const tr_case *the_case) {
    test_node node;
    int present = 0;
    test_node_open(&node, the_case);
    r->view = test_node_symbolic(&node, r->in, r->out);
    for (int i = 0; i < the_case->in_count; i++) {
        if (r->in[i].dtype != TR_NONE) {
            spoil_input(r, i);
            present++;
        }
    }
    r->several = r->several || present > 1;
    if (the_case->in_count > 0) {
        r->view.in_count = 0;
        must_refuse(r, "absence", 0);
    }
    if (the_case->in_count < TR_OP_IN_MAX) {
        r->view.in_count = TR_OP_IN_MAX;
        must_refuse(r, "a number too many", TR_OP_IN_MAX - 1);
    }
    test_node_close(&node);
}

int test_conform_refusals(const tr_case_list *list) {
    tr_case the_case;
    refusals r = {0};
    for (; list->get(r.index, &the_case); r.index++) {
        r.op = the_case.op;
        spoil_case(&r, &the_case);
    }
    if (r.several && r.mismatches == 0) {
        print_error("%s: no mismatch of shapes is refused\n", list->op_name);
        r.failed++;
    }
    return r.failed;
}
