// Every way in which an op can be split over ranks, on its cases: what the ranks make
// is together what the whole op makes, and so are their gradients. (tr_op.split)
#include "ops/node.h"

#include "base/checked.h"
#include "ops/operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES(name) extern const tr_case_list tr__cases_##name;
#include "case_lists.inc"
#undef CASES
#define CASES(name) &tr__cases_##name,
static const tr_case_list *const lists[] = {
#include "case_lists.inc"
};
#undef CASES

enum { LISTS = sizeof lists / sizeof *lists, RANKS_MOST = 3 };

// ---- parts of a tensor

typedef struct part {
    const tr_cut *cut; // dim -1: all of it
    int64_t ranks, rank;
} part;

// Of whatever blocks: one.
static int blocks_of(const tr_cut *cut) {
    return cut->blocks > 0 ? cut->blocks : 1;
}

static int64_t block_of(const tr_cut *cut, tr_shape whole, int b) {
    return cut->blocks > 0 ? cut->block[b] : whole.dim[cut->dim];
}

static int64_t repeat_of(const tr_cut *cut, int b) {
    return cut->repeat[b] > 1 ? cut->repeat[b] : 1;
}

static bool can_cut(const tr_cut *cut, tr_shape whole, int64_t ranks) {
    bool can = !cut->tokens || whole.dim[cut->dim] % ranks == 0;
    for (int b = 0; cut->dim >= 0 && b < blocks_of(cut); b++) {
        int64_t parts = ranks / repeat_of(cut, b);
        can = can && block_of(cut, whole, b) >= parts;
    }
    return can;
}

// Elements of the part along the dimension that is cut.
static int64_t part_size(tr_shape whole, const part *p) {
    int64_t own = 0;
    for (int b = 0; b < blocks_of(p->cut); b++) {
        own += tr__cut_own_count(block_of(p->cut, whole, b), p->cut->repeat[b],
                                 p->ranks, p->rank);
    }
    return own;
}

static tr_tensor_desc part_desc(tr_tensor_desc whole, const part *p) {
    if (whole.dtype != TR_NONE && p->cut->dim >= 0) {
        whole.shape.dim[p->cut->dim] = part_size(whole.shape, p);
    }
    return whole;
}

// Where element `at` of the dimension of a part is in the whole. *repeat: how many
// ranks have it.
static int64_t whole_place(tr_shape whole, const part *p, int64_t at, int64_t *repeat) {
    int64_t first = 0;
    for (int b = 0; b < blocks_of(p->cut); b++) {
        int64_t size = block_of(p->cut, whole, b);
        int64_t same = p->cut->repeat[b];
        int64_t own = tr__cut_own_count(size, same, p->ranks, p->rank);
        *repeat = repeat_of(p->cut, b);
        if (at < own) {
            return first + tr__cut_own_first(size, same, p->ranks, p->rank) + at;
        }
        at -= own;
        first += size;
    }
    return -1;
}

// The element of the whole tensor that is element `i` of the part. *repeat: as above.
static int64_t element_of(tr_shape whole, const part *p, int64_t i, int64_t *repeat) {
    *repeat = 1;
    if (p->cut->dim < 0) {
        return i;
    }
    if (p->cut->tokens) { // a run of elements
        return tr_shape_count(whole) / p->ranks * p->rank + i;
    }
    int64_t inner = 1;
    for (int d = p->cut->dim + 1; d < whole.rank; d++) {
        inner *= whole.dim[d];
    }
    int64_t all = whole.dim[p->cut->dim], own = part_size(whole, p);
    int64_t outer = i / (own * inner), at = i / inner % own;
    return (outer * all + whole_place(whole, p, at, repeat)) * inner + i % inner;
}

// shares: of an element that several ranks have, each gets its share.
static void take_part(test_tensor *to, const test_tensor *whole, const part *p,
                      bool shares) {
    for (int64_t i = 0; to->desc.dtype != TR_NONE && i < tr_shape_count(to->desc.shape);
         i++) {
        int64_t repeat, from = element_of(whole->desc.shape, p, i, &repeat);
        if (whole->desc.dtype == TR_I32) { // positions
            ((int32_t *)to->memory.data)[i] =
                ((const int32_t *)whole->memory.data)[from];
        } else {
            double share = shares ? (double)repeat : 1;
            test_tensor_put(to, i, test_tensor_at(whole, from) / share);
        }
    }
}

static void add_part(double *sum, const test_tensor *of, tr_shape whole, const part *p,
                     bool shares) {
    for (int64_t i = 0; i < tr_shape_count(of->desc.shape); i++) {
        int64_t repeat, at = element_of(whole, p, i, &repeat);
        sum[at] += test_tensor_at(of, i) / (shares ? (double)repeat : 1);
    }
}

// ---- one way

typedef struct trial {
    const tr_case *whole_case;
    test_node whole;
    test_tensor start[TR_OP_OUT_MAX]; // gradients of its outputs
    int64_t ranks;
    int tried;
} trial;

static void assert_near(const test_tensor *want, const double *got, double tolerance,
                        const char *what) {
    double size = test_tensor_largest(want);
    for (int64_t i = 0; i < tr_shape_count(want->desc.shape); i++) {
        double off = got[i] - test_tensor_at(want, i);
        if (!(off <= tolerance * size && -off <= tolerance * size)) {
            fail_msg("%s: element %d is %g off, of %g", what, (int)i, off, size);
        }
    }
}

// What the parts of all ranks come to: joined, summed, or the same on all. made: what
// several ranks have counts once, and is else summed.
static double *whole_of(const test_tensor *want, const test_tensor parts[RANKS_MOST],
                        const tr_cut *cut, bool partial, bool made, int64_t ranks) {
    int64_t count = tr_shape_count(want->desc.shape);
    double *sum = calloc((size_t)count, sizeof *sum);
    assert_non_null(sum);
    bool joins = cut->dim >= 0 || partial;
    for (int64_t r = 0; r < (joins ? ranks : 1); r++) {
        const part p = {cut, ranks, r};
        add_part(sum, &parts[r], want->desc.shape, &p, made);
    }
    return sum;
}

static void check_outputs(trial *t, const tr_split *ways, test_node *nodes) {
    const test_node *whole = &t->whole;
    for (int i = 0; i < whole->out_count; i++) {
        test_tensor parts[RANKS_MOST];
        for (int64_t r = 0; r < t->ranks; r++) {
            parts[r] = nodes[r].out[i];
        }
        double *got = whole_of(&whole->out[i], parts, &ways->out[i],
                               ways->partial >> i & 1, true, t->ranks);
        int64_t count = tr_shape_count(whole->out[i].desc.shape);
        const test_tensor *added =
            i == 0 && ways->added > 0 ? &whole->in[ways->added - 1] : NULL;
        for (int64_t k = 0; added && k < count; k++) {
            got[k] += test_tensor_at(added, k % tr_shape_count(added->desc.shape));
        }
        assert_near(&whole->out[i], got, 1e-5, t->whole_case->name);
        free(got);
    }
}

static void check_gradients(trial *t, const tr_split *ways, test_node *nodes) {
    const test_node *whole = &t->whole;
    uint32_t written = test_node_grads_written(whole);
    for (int i = 0; i < t->whole_case->in_count; i++) {
        test_tensor parts[RANKS_MOST];
        bool there = (written >> i & 1) && whole->in[i].desc.dtype == TR_F32 &&
                     ways->added != i + 1;
        for (int64_t r = 0; r < t->ranks; r++) {
            parts[r] = nodes[r].grad_in[i];
        }
        if (there) {
            double *got = whole_of(&whole->grad_in[i], parts, &ways->in[i],
                                   ways->partial_gradient >> i & 1, false, t->ranks);
            assert_near(&whole->grad_in[i], got, 1e-5, t->whole_case->name);
            free(got);
        }
    }
}

// The rank's own case: its parts of the inputs, and what the way says of the rest.
static tr_case case_of(const trial *t, const tr_split *way, int64_t rank) {
    tr_case own = *t->whole_case;
    memcpy(own.attr, way->attr, sizeof own.attr);
    for (int i = 0; i < own.in_count; i++) {
        const part p = {&way->in[i], t->ranks, rank};
        own.in[i].desc = part_desc(own.in[i].desc, &p);
    }
    if (way->added > 0) {
        own.in[way->added - 1].desc = (tr_tensor_desc){.dtype = TR_NONE};
    }
    return own;
}

// The blocks that a way's ranges ask for, and what is between them.
static void cut_in_ranges(const tr_split *way, int64_t all, tr_cut *cut) {
    int64_t at = 0;
    for (int r = 0; r < way->ranges; r++) {
        tr__cut_add(cut, way->range[r].first - at);
        tr__cut_add(cut, way->range[r].count);
        at = way->range[r].first + way->range[r].count;
    }
    tr__cut_add(cut, all - at);
}

// Where a way asks for blocks, tensors that say none have these: those of the inputs
// and outputs, or of the parameter that is taken.
static void settle(const trial *t, tr_split *way) {
    for (int i = 0; i < TR_OP_IN_MAX + TR_OP_OUT_MAX && way->place; i++) {
        bool input = i < TR_OP_IN_MAX;
        tr_cut *cut = input ? &way->in[i] : &way->out[i - TR_OP_IN_MAX];
        const test_tensor *of =
            input ? &t->whole.in[i] : &t->whole.out[i - TR_OP_IN_MAX];
        if (cut->dim >= 0 && cut->blocks == 0 && of->desc.dtype != TR_NONE &&
            (way->taken == 0 || way->taken == i + 1)) {
            cut_in_ranges(way, of->desc.shape.dim[cut->dim], cut);
        }
    }
}

// Where rank `rank` has the ranges: behind its parts of the blocks before.
static void place_ranges(const trial *t, tr_split *way, int64_t rank) {
    const tr_cut *cut = way->taken > 0 ? &way->in[way->taken - 1] : &way->out[0];
    for (int r = 0; r < way->ranges && way->place; r++) {
        int64_t first = 0, at = 0;
        int b = 0;
        for (; at < way->range[r].first; b++) {
            first += tr__cut_own_count(cut->block[b], 1, t->ranks, rank);
            at += cut->block[b];
        }
        way->place(way->attr, r, first,
                   tr__cut_own_count(cut->block[b], 1, t->ranks, rank));
    }
}

static void try_way(trial *t, int way) {
    const test_way reference = {.isa = -1, .threads = 1, .given = true};
    tr_case cases[RANKS_MOST];
    test_node nodes[RANKS_MOST];
    tr_split ways[RANKS_MOST];
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_op_node symbolic = test_node_symbolic(&t->whole, in, out);
    for (int64_t r = 0; r < t->ranks; r++) {
        memset(&ways[r], 0, sizeof ways[r]);
        memcpy(ways[r].attr, t->whole_case->attr, sizeof ways[r].attr);
        assert_true(t->whole_case->op->split(&symbolic, way, t->ranks, r, &ways[r]));
        settle(t, &ways[r]);
        place_ranges(t, &ways[r], r);
        cases[r] = case_of(t, &ways[r], r);
        test_node_open(&nodes[r], &cases[r]);
        for (int i = 0; i < cases[r].in_count; i++) {
            const part p = {&ways[r].in[i], t->ranks, r};
            take_part(&nodes[r].in[i], &t->whole.in[i], &p, false);
        }
        test_node_forward(&nodes[r], &reference);
        test_node_start_backward(&nodes[r], &reference, NULL);
        for (int i = 0; i < nodes[r].out_count; i++) {
            const part p = {&ways[r].out[i], t->ranks, r};
            if (nodes[r].grad_out[i].desc.dtype != TR_NONE) {
                take_part(&nodes[r].grad_out[i], &t->start[i], &p, true);
            }
        }
        test_node_run_backward(&nodes[r], &reference);
    }
    check_outputs(t, &ways[0], nodes);
    check_gradients(t, &ways[0], nodes);
    for (int64_t r = 0; r < t->ranks; r++) {
        test_node_close(&nodes[r]);
    }
    t->tried++;
}

// Can all tensors be cut so?
static bool fits(const trial *t, const tr_split *way) {
    bool fits = true;
    for (int i = 0; i < t->whole_case->in_count; i++) {
        bool there = t->whole.in[i].desc.dtype != TR_NONE;
        fits = fits &&
               (!there || can_cut(&way->in[i], t->whole.in[i].desc.shape, t->ranks));
    }
    for (int i = 0; i < t->whole.out_count; i++) {
        fits = fits && can_cut(&way->out[i], t->whole.out[i].desc.shape, t->ranks);
    }
    return fits;
}

static void try_ranks(trial *t) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_op_node symbolic = test_node_symbolic(&t->whole, in, out);
    tr_split way = {.added = 0};
    memcpy(way.attr, t->whole_case->attr, sizeof way.attr);
    for (int w = 0; t->whole_case->op->split(&symbolic, w, t->ranks, 0, &way); w++) {
        settle(t, &way);
        if (way.expands) { // tests/ops/test_shared_head.c
            t->tried++;
        } else if (fits(t, &way)) {
            try_way(t, w);
        }
        way = (tr_split){.added = 0};
        memcpy(way.attr, t->whole_case->attr, sizeof way.attr);
    }
}

static int try_case(const tr_case *the_case) {
    const test_way reference = {.isa = -1, .threads = 1, .given = true};
    trial t = {.whole_case = the_case};
    test_node_open(&t.whole, the_case);
    test_node_forward(&t.whole, &reference);
    for (int i = 0; i < t.whole.out_count; i++) {
        test_node_grad_start(&t.whole, i, &t.start[i]);
    }
    test_node_backward(&t.whole, &reference, NULL);
    for (t.ranks = 2; t.ranks <= RANKS_MOST; t.ranks++) {
        try_ranks(&t);
    }
    for (int i = 0; i < t.whole.out_count; i++) {
        test_tensor_give(&t.start[i]);
    }
    test_node_close(&t.whole);
    return t.tried;
}

static void parts_make_the_whole(void **state) {
    int ops = 0;
    (void)state;
    for (int l = 0; l < LISTS; l++) {
        tr_case the_case;
        int tried = 0;
        bool splits = false;
        for (int i = 0; lists[l]->get(i, &the_case); i++) {
            if (the_case.op->split) {
                splits = true;
                tried += try_case(&the_case);
            }
        }
        if (splits && tried == 0) {
            fail_msg("no case of %s can be split", lists[l]->op_name);
        }
        ops += splits;
    }
    assert_true(ops >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_make_the_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
