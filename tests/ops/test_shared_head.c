// The head on ranks that share its classes (graph/rewrites/split.c): each folds its
// own, the parts are summed and joined, and so sums and gradients are those of the
// whole head.
#include "ops/node.h"

#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "ops/nn/softmax_parts/softmax_parts.h"
#include "ops/operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const tr_case_list tr__cases_linear_cross_entropy;

enum { X, WEIGHT, BIAS, TARGETS, HEAD_INPUTS };
enum { RANKS_MOST = 3 };

static const test_way reference = {.isa = -1, .threads = 1, .given = true};

typedef struct ranks {
    test_node whole, folded[RANKS_MOST], part[RANKS_MOST], joined, loss;
    tr_case whole_case, fold_case[RANKS_MOST], part_case[RANKS_MOST];
    tr_case join_case, loss_case;
    int64_t count, classes;
    bool in_first; // the weight is [in, classes]
} ranks;

static size_t bytes_of(const test_tensor *tensor) {
    return (size_t)tr_tensor_bytes(tensor->desc);
}

static void copy(test_tensor *to, const test_tensor *from) {
    assert_int_equal(bytes_of(to), bytes_of(from));
    memcpy(to->memory.data, from->memory.data, bytes_of(from));
}

// ---- a rank's classes

// The element of the whole tensor (weight or bias) that is element i of a rank's.
static int64_t element_of(const ranks *k, int64_t rank, int input, int64_t i) {
    int64_t first = tr__cut_first(k->classes, k->count, rank);
    int64_t own = tr__cut_count(k->classes, k->count, rank);
    int64_t width = tr__shape_width(k->whole.in[X].desc.shape);
    if (input == BIAS) {
        return first + i;
    }
    return k->in_first ? i / own * k->classes + first + i % own : first * width + i;
}

static void set_fold_case(ranks *k, int64_t rank) {
    tr_case *own = &k->fold_case[rank];
    tr_lce_slice_attr attr = {.first = tr__cut_first(k->classes, k->count, rank)};
    int64_t count = tr__cut_count(k->classes, k->count, rank);
    *own = k->whole_case;
    own->op = &tr__op_linear_cross_entropy_slice;
    own->in_count = HEAD_INPUTS + 2;
    memcpy(&attr.head, k->whole_case.attr, sizeof attr.head);
    memcpy(own->attr, &attr, sizeof attr);
    own->in[WEIGHT].desc.shape.dim[k->in_first ? 1 : 0] = count;
    if (own->in[BIAS].desc.dtype != TR_NONE) {
        own->in[BIAS].desc.shape.dim[0] = count;
    }
}

static void fold(ranks *k, int64_t rank) {
    test_node *node = &k->folded[rank];
    set_fold_case(k, rank);
    test_node_open(node, &k->fold_case[rank]);
    copy(&node->in[X], &k->whole.in[X]);
    copy(&node->in[TARGETS], &k->whole.in[TARGETS]);
    for (int input = WEIGHT; input <= BIAS; input++) {
        test_tensor *to = &node->in[input];
        int64_t elements =
            to->desc.dtype == TR_NONE ? 0 : tr_shape_count(to->desc.shape);
        for (int64_t i = 0; i < elements; i++) {
            int64_t from = element_of(k, rank, input, i);
            test_tensor_put(to, i, test_tensor_at(&k->whole.in[input], from));
        }
    }
    test_node_forward(node, &reference);
}

// ---- forward

static void place(ranks *k, int64_t rank) {
    const tr_softmax_part_attr attr = {k->count, rank};
    const test_tensor *folded = k->folded[rank].out;
    k->part_case[rank] =
        (tr_case){.op = &tr__op_softmax_part,
                  .in_count = 2,
                  .in = {{.desc = folded[0].desc}, {.desc = folded[1].desc}}};
    memcpy(k->part_case[rank].attr, &attr, sizeof attr);
    test_node_open(&k->part[rank], &k->part_case[rank]);
    copy(&k->part[rank].in[0], &folded[0]);
    copy(&k->part[rank].in[1], &folded[1]);
    test_node_forward(&k->part[rank], &reference);
}

static void join(ranks *k) {
    test_tensor *sum;
    k->join_case = (tr_case){.op = &tr__op_softmax_join,
                             .in_count = 1,
                             .in = {{.desc = k->part[0].out[0].desc}}};
    test_node_open(&k->joined, &k->join_case);
    sum = &k->joined.in[0];
    for (int64_t i = 0; i < tr_shape_count(sum->desc.shape); i++) {
        double value = 0;
        for (int64_t r = 0; r < k->count; r++) {
            value += test_tensor_at(&k->part[r].out[0], i);
        }
        test_tensor_put(sum, i, value);
    }
    test_node_forward(&k->joined, &reference);
}

static void lose(ranks *k) {
    k->loss_case = (tr_case){.op = &tr__op_linear_cross_entropy_slice_loss,
                             .in_count = 3,
                             .in = {{.desc = k->joined.out[0].desc},
                                    {.desc = k->joined.out[1].desc},
                                    k->whole_case.in[TARGETS]}};
    test_node_open(&k->loss, &k->loss_case);
    copy(&k->loss.in[0], &k->joined.out[0]);
    copy(&k->loss.in[1], &k->joined.out[1]);
    copy(&k->loss.in[2], &k->whole.in[TARGETS]);
    test_node_forward(&k->loss, &reference);
}

// ---- backward

// The gradient of the node's first output is that of another node's first input.
static void go_back(test_node *node, const test_node *from) {
    test_node_start_backward(node, &reference, NULL);
    copy(&node->grad_out[0], &from->grad_in[0]);
    test_node_run_backward(node, &reference);
}

static void go_back_all(ranks *k) {
    test_node_backward(&k->whole, &reference, NULL);
    test_node_backward(&k->loss, &reference, NULL);
    go_back(&k->joined, &k->loss);
    for (int64_t r = 0; r < k->count; r++) {
        go_back(&k->part[r], &k->joined);
        go_back(&k->folded[r], &k->part[r]);
    }
}

static void assert_near(double got, double want, double size, const char *what) {
    if (!(got - want <= 1e-5 * size && want - got <= 1e-5 * size)) {
        fail_msg("%s: %g, and %g of the whole head", what, got, want);
    }
}

static void check_weights(const ranks *k, int64_t rank, int input) {
    const test_tensor *own = &k->folded[rank].grad_in[input];
    const test_tensor *whole = &k->whole.grad_in[input];
    if (k->whole_case.in[input].desc.dtype == TR_NONE) {
        return;
    }
    for (int64_t i = 0; i < tr_shape_count(own->desc.shape); i++) {
        double want = test_tensor_at(whole, element_of(k, rank, input, i));
        assert_near(test_tensor_at(own, i), want, test_tensor_largest(whole),
                    input == WEIGHT ? "weight" : "bias");
    }
}

static void check(const ranks *k) {
    const test_tensor *dx = &k->whole.grad_in[X];
    for (int i = 0; i < TR_SUMS; i++) {
        double want = test_tensor_at(&k->whole.out[0], i);
        assert_near(test_tensor_at(&k->loss.out[0], i), want, 1 + want, "sums");
    }
    for (int64_t i = 0; i < tr_shape_count(dx->desc.shape); i++) {
        double sum = 0;
        for (int64_t r = 0; r < k->count; r++) {
            sum += test_tensor_at(&k->folded[r].grad_in[X], i);
        }
        assert_near(sum, test_tensor_at(dx, i), test_tensor_largest(dx), "x");
    }
    for (int64_t r = 0; r < k->count; r++) {
        check_weights(k, r, WEIGHT);
        check_weights(k, r, BIAS);
    }
}

// ---- cases

static void try_ranks(const tr_case *the_case, int64_t count, int64_t classes) {
    tr_lce_attr attr;
    memcpy(&attr, the_case->attr, sizeof attr);
    ranks k = {.whole_case = *the_case,
               .count = count,
               .classes = classes,
               .in_first = attr.layout == TR_WEIGHT_IN_OUT};
    test_node_open(&k.whole, &k.whole_case);
    test_node_forward(&k.whole, &reference);
    for (int64_t r = 0; r < count; r++) {
        fold(&k, r);
        place(&k, r);
    }
    join(&k);
    lose(&k);
    go_back_all(&k);
    check(&k);
    test_node_close(&k.whole);
    test_node_close(&k.joined);
    test_node_close(&k.loss);
    for (int64_t r = 0; r < count; r++) {
        test_node_close(&k.folded[r]);
        test_node_close(&k.part[r]);
    }
}

static void ranks_share_the_classes(void **state) {
    tr_case the_case;
    int tried = 0;
    (void)state;
    for (int i = 0; tr__cases_linear_cross_entropy.get(i, &the_case); i++) {
        tr_lce_attr attr;
        if (the_case.op != &tr__op_linear_cross_entropy) {
            continue; // logits
        }
        memcpy(&attr, the_case.attr, sizeof attr);
        bool in_first = attr.layout == TR_WEIGHT_IN_OUT;
        int64_t classes = the_case.in[WEIGHT].desc.shape.dim[in_first ? 1 : 0];
        // The reference is slow: large products are nothing of their own here.
        bool small = classes * tr_shape_count(the_case.in[X].desc.shape) < 100000;
        int64_t most = small ? RANKS_MOST : 0;
        for (int64_t count = 2; count <= most && count <= classes; count++) {
            try_ranks(&the_case, count, classes);
            tried++;
        }
    }
    assert_true(tried >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_share_the_classes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
