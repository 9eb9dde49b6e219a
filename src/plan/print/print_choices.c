// What units keep for their backward, and what each choice of recomputing it instead
// saves and costs.
#include "base/json_writer.h"
#include "base/text.h"
#include "plan/flow/choices.h"

#include <inttypes.h>

// Units that have the program of unit u; 0 where an earlier one has it.
static int users(const tr_plan *plan, int u) {
    int count = 0;
    for (int other = tr__plan_next(plan, 0); other < plan->unit_count;
         other = tr__plan_next(plan, other + 1)) {
        bool same = plan->units[other].program == plan->units[u].program;
        if (same && other < u) {
            return 0;
        }
        count += same;
    }
    return count;
}

// The classes that the plan recomputes in the unit, of those that it has.
static uint32_t chosen_classes(const tr_plan *plan, int unit) {
    return plan->units[unit].program->recomputed & tr__unit_classes(plan, unit);
}

static bool is_chosen(const tr_plan *plan, int unit, const tr_recompute_choice *row) {
    const tr_plan_unit *of = &plan->units[unit];
    return of->recomputed == row->units &&
           (row->units || chosen_classes(plan, unit) == (row->ops & TR_RECOMPUTE_ALL));
}

// "none", "norm, product", "unit".
static void name_row(const tr_recompute_choice *row, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (uint32_t bit = 1; bit & TR_RECOMPUTE_ALL && !row->units; bit <<= 1) {
        if (row->ops & bit && at < size) {
            int written = snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                                   tr_recompute_name((tr_recompute_class)bit));
            at += written > 0 ? (size_t)written : 0;
        }
    }
    if (at == 0) {
        snprintf(text, size, "%s", row->units ? "unit" : "none");
    }
}

enum { ROWS_MAX = TR_RECOMPUTE_CHOICES_MAX + 1, ROW_TEXT = 96 };

// The rows of unit u: useful choices, and last the plan's own where it is none of them.
static tr_status find_rows(const tr_plan *plan, int u,
                           tr_recompute_choice rows[ROWS_MAX], int *count,
                           tr_error *err) {
    tr_status status = tr__unit_choices(plan, u, rows, count, err);
    for (int i = 0; i < *count && status == TR_OK; i++) {
        if (is_chosen(plan, u, &rows[i])) {
            return TR_OK;
        }
    }
    if (status == TR_OK) {
        uint32_t recomputed = chosen_classes(plan, u);
        status =
            tr__unit_choice(plan, u, recomputed ? recomputed : TR_RECOMPUTE_NOTHING,
                            plan->units[u].recomputed, &rows[*count], err);
        *count += status == TR_OK;
    }
    return status;
}

static void print_row(const tr_plan *plan, int unit, const tr_recompute_choice *row,
                      FILE *to) {
    char size[32], text[ROW_TEXT];
    tr__print_size(size, sizeof size, row->kept);
    name_row(row, text, sizeof text);
    fprintf(to, "      %c %14" PRId64 "  %12s  %12.3f  %s\n",
            is_chosen(plan, unit, row) ? '*' : ' ', row->kept, size, row->flops / 1e9,
            text);
}

static tr_status print_unit(const tr_plan *plan, int u, int times, bool *begun,
                            FILE *to, tr_error *err) {
    const char *name = plan->request.model->units[u].name;
    tr_recompute_choice rows[ROWS_MAX];
    int count = 0;
    tr_status status = find_rows(plan, u, rows, &count, err);
    if (status != TR_OK || rows[0].kept == 0) {
        return status;
    }
    if (!*begun) {
        fprintf(to, "\nbytes kept for one micro-batch and GFLOP to recompute the rest, "
                    "by execution.recompute (*: this plan)\n");
        *begun = true;
    }
    if (times > 1) {
        fprintf(to, "    %s and %d like it, each\n", name, times - 1);
    } else {
        fprintf(to, "    %s\n", name);
    }
    for (int i = 0; i < count; i++) {
        print_row(plan, u, &rows[i], to);
    }
    return TR_OK;
}

tr_status tr__choices_print(const tr_plan *plan, FILE *to, tr_error *err) {
    tr_status status = TR_OK;
    bool begun = false;
    for (int u = tr__plan_next(plan, 0);
         u < plan->unit_count && !plan->request.inference;
         u = tr__plan_next(plan, u + 1)) {
        int times = users(plan, u);
        if (times > 0) {
            status = print_unit(plan, u, times, &begun, to, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

static void write_row(const tr_plan *plan, int unit, const tr_recompute_choice *row,
                      tr_json_writer *to) {
    char text[ROW_TEXT];
    name_row(row, text, sizeof text);
    tr__json_line(to, 6);
    tr__json_open(to, '{');
    tr__json_put_text(to, "recompute", text);
    tr__json_put_integer(to, "kept", row->kept);
    tr__json_put_whole(to, "flops", row->flops);
    tr__json_put_bool(to, "chosen", is_chosen(plan, unit, row));
    tr__json_close(to, '}');
}

static tr_status write_unit(const tr_plan *plan, int u, int times, tr_json_writer *to,
                            tr_error *err) {
    tr_recompute_choice rows[ROWS_MAX];
    int count = 0;
    tr_status status = find_rows(plan, u, rows, &count, err);
    if (status != TR_OK) {
        return status;
    }
    tr__json_line(to, 4);
    tr__json_open(to, '{');
    tr__json_put_text(to, "unit", plan->request.model->units[u].name);
    tr__json_put_integer(to, "units", times);
    tr__json_put_open(to, "choices", '[');
    for (int i = 0; i < count; i++) {
        write_row(plan, u, &rows[i], to);
    }
    tr__json_close(to, ']');
    tr__json_close(to, '}');
    return TR_OK;
}

tr_status tr__choices_write(const tr_plan *plan, tr_json_writer *to, tr_error *err) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "recompute", '[');
    for (int u = tr__plan_next(plan, 0);
         u < plan->unit_count && !plan->request.inference;
         u = tr__plan_next(plan, u + 1)) {
        int times = users(plan, u);
        tr_status status = times > 0 ? write_unit(plan, u, times, to, err) : TR_OK;
        if (status != TR_OK) {
            return status;
        }
    }
    tr__json_close(to, ']');
    return TR_OK;
}
