// The caller's functions that a plan runs, and what they take beside it.
#include "base/memory.h"
#include "base/text.h"
#include "graph/function.h"
#include "plan/flow/plan.h"
#include "plan/print/print.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct called {
    const tr_function *function;
    int units, last_unit;
} called;

typedef struct called_list {
    called *all;
    size_t count, capacity;
} called_list;

static bool add(called_list *list, const tr_function *function, int unit) {
    for (size_t i = 0; i < list->count; i++) {
        called *known = &list->all[i];
        if (known->function == function) {
            known->units += known->last_unit != unit;
            known->last_unit = unit;
            return true;
        }
    }
    if (!tr__grow((void **)&list->all, &list->capacity, list->count + 1,
                  sizeof *list->all)) {
        return false;
    }
    list->all[list->count++] = (called){function, 1, unit};
    return true;
}

static bool add_role(called_list *list, const tr_plan *plan, int unit,
                     tr_variant role) {
    const tr_unit_program *programs = plan->units[unit].program;
    for (int i = 0; i < tr__unit_pieces(programs, role); i++) {
        const tr_program *program = tr__unit_piece(programs, role, i);
        for (size_t k = 0; k < program->count && !program->exchange; k++) {
            const tr_function *f = tr__function_of(&program->instructions[k].desc);
            if (f && !add(list, f, unit)) {
                return false;
            }
        }
    }
    return true;
}

static tr_status collect(const tr_plan *plan, called_list *list, tr_error *err) {
    for (int u = 0; u < plan->unit_count; u++) {
        if (!add_role(list, plan, u, TR_VARIANT_INFERENCE) ||
            !add_role(list, plan, u, TR_VARIANT_FORWARD) ||
            !add_role(list, plan, u, TR_VARIANT_BACKWARD)) {
            tr__free(list->all);
            return tr_fail(err, TR_MEMORY, "no memory to print the plan");
        }
    }
    return TR_OK;
}

static const char *name_of(const tr_function *function) {
    return function->name ? function->name : "function";
}

tr_status tr__functions_print(const tr_plan *plan, FILE *to, tr_error *err) {
    called_list list = {0};
    tr_status status = collect(plan, &list, err);
    for (size_t i = 0; status == TR_OK && i < list.count; i++) {
        const called *c = &list.all[i];
        int64_t outside = tr__function_outside(c->function);
        char size[32];
        tr__print_size(size, sizeof size, outside);
        fprintf(to, "%s    %12s  in %d unit%s  %s\n",
                i == 0 ? "\nfunctions of the caller, and the memory that a call takes "
                         "beside the ledger\n"
                       : "",
                outside > 0 ? size : "not known", c->units, tr__plural(c->units),
                name_of(c->function));
    }
    tr__free(list.all);
    return status;
}

tr_status tr__functions_write(const tr_plan *plan, tr_json_writer *to, tr_error *err) {
    called_list list = {0};
    tr_status status = collect(plan, &list, err);
    if (status != TR_OK || list.count == 0) {
        return status;
    }
    tr__json_line(to, 2);
    tr__json_put_open(to, "functions", '[');
    for (size_t i = 0; i < list.count; i++) {
        const called *c = &list.all[i];
        tr__json_line(to, 4);
        tr__json_open(to, '{');
        tr__json_put_text(to, "name", name_of(c->function));
        tr__json_put_integer(to, "units", c->units);
        tr__json_put_integer(to, "outside_bytes", tr__function_outside(c->function));
        tr__json_close(to, '}');
    }
    tr__json_line(to, 2);
    tr__json_close(to, ']');
    tr__free(list.all);
    return TR_OK;
}
