// Products in fp8 that tensor ranks share: what scales follow from is gathered, in as
// few messages as the unit allows; a plan that takes a rank's own largest value for the
// whole tensor's, or another tensor's, is found.
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/linear_fp8.h"
#include "plan/flow/passes.h"
#include "plan/models.h"
#include "plan/proof/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct setting {
    bool sequence, recomputed;
    int64_t ranks, steps;
} setting;

static const setting settings[] = {
    {false, false, 2, 3}, {true, false, 2, 1}, {false, true, 2, 2}, {true, true, 2, 3}};

enum { SETTINGS = sizeof settings / sizeof *settings, BLOCK = 1 };

static tr_plan *make(tr_model *model, const setting *s) {
    tr_plan_request request = test_request(model, 2, s->steps);
    request.compute = TR_BF16;
    request.fp8.enabled = true;
    request.mesh.size[TR_AXIS_TENSOR] = s->ranks;
    request.mesh.at[TR_AXIS_TENSOR] = 1;
    request.sequence_parallel = s->sequence;
    request.recomputed_units = s->recomputed ? -1 : 0;
    return test_plan(&request);
}

static bool is_product(const tr_op *op) {
    return op == &tr__op_linear_fp8 || op == &tr__op_linear_fp8_backward_input ||
           op == &tr__op_linear_fp8_backward_weight;
}

static int count_gathers(const tr_unit_program *unit, tr_variant role) {
    int count = 0;
    for (int i = 0; i < tr__unit_pieces(unit, role); i++) {
        const tr_program *program = tr__unit_piece(unit, role, i);
        count += program->exchange &&
                 program->instructions[0].desc.op == &tr__op_gather_largest;
    }
    return count;
}

// Of GPT-2: the weights of a block together, x of the two products that end runs, and
// the gradients of the two that begin them.
static void few_messages(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        tr_plan *plan = make(model, &settings[i]);
        const tr_unit_program *block = plan->units[BLOCK].program;
        assert_int_equal(count_gathers(block, TR_VARIANT_EVALUATE), 1 + 2);
        assert_int_equal(count_gathers(block, TR_VARIANT_BACKWARD), 2);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

static void must_find(const tr_plan *plan, const char *what) {
    tr_error err = {0};
    if (tr__check_parts(plan, &err) != TR_INTERNAL) {
        fail_msg("%s is not found", what);
    }
}

static tr_call *maker_of(tr_graph *graph, tr_value value) {
    for (size_t n = 0; n < graph->node_count; n++) {
        if (graph->nodes[n].out[0] == value) {
            return &graph->nodes[n];
        }
    }
    return NULL;
}

// The rank's own value in the place of the gathered ones, or none at all, or another
// tensor's; *spoilt: how many products are told.
static void spoil_product(tr_plan *plan, tr_instruction *at, int *spoilt) {
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        tr_operand *told = &at->in[tr__fp8_plain_inputs(at->desc.op) + i];
        const tr_operand right = *told;
        tr_linear_fp8_attr *attr = (void *)at->desc.attr;
        if (right.place == TR_PLACE_NONE || right.value == TR_NO_VALUE) {
            continue;
        }
        told->place = TR_PLACE_NONE;
        must_find(plan, "a product whose scale is a rank's own");
        *told = right;
        attr->column[i]++;
        must_find(plan, "a product that takes another tensor's scale");
        attr->column[i]--;
        tr_call *gather = maker_of(plan->units[BLOCK].program->graph, right.value);
        if (gather) { // else it is one of the backward
            told->value = gather->in[attr->column[i]];
            must_find(plan, "a largest value that ranks have not gathered");
            *told = right;
        }
        (*spoilt)++;
    }
}

static void spoil_nodes(tr_plan *plan, int *spoilt) {
    tr_graph *graph = plan->units[BLOCK].program->graph;
    for (size_t n = 0; n < graph->node_count; n++) {
        tr_call *node = &graph->nodes[n];
        const tr_call right = *node;
        if (node->op == &tr__op_gather_largest) {
            ((tr_gather_largest_attr *)(void *)node->attr)->axes = TR_ON_DATA;
            must_find(plan, "what other ranks have gathered");
            *node = right;
            ((tr_gather_largest_attr *)(void *)node->attr)->rank ^= 1;
            must_find(plan, "what is put where another rank's is");
            *node = right;
        } else if (node->op == &tr__op_largest) {
            node->in[0] = graph->input_value[0];
            must_find(plan, "the largest value of another tensor");
            *node = right;
        } else {
            continue;
        }
        (*spoilt)++;
    }
}

static void another_scale_is_found(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    (void)state;
    for (int s = 0; s < SETTINGS; s++) {
        tr_plan *plan = make(model, &settings[s]);
        const tr_unit_program *unit = plan->units[BLOCK].program;
        tr_error err = {0};
        int products = 0, nodes = 0;
        assert_int_equal(tr__check_parts(plan, &err), TR_OK);
        for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
            const tr_program *program = &unit->programs[i];
            for (size_t k = 0; k < program->count; k++) {
                if (is_product(program->instructions[k].desc.op)) {
                    spoil_product(plan, &program->instructions[k], &products);
                }
            }
        }
        spoil_nodes(plan, &nodes);
        assert_int_equal(tr__check_parts(plan, &err), TR_OK);
        assert_true(products >= 20 && nodes >= 9);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_messages),
                                       cmocka_unit_test(another_scale_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
