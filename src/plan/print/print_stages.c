// The stages of a pipeline: their units, and what a rank of each takes and computes.
#include "base/text.h"
#include "plan/flow/plan.h"
#include "plan/print/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t stages_of(const tr_plan *plan) {
    return plan->stages ? plan->request.mesh.size[TR_AXIS_PIPELINE] : 0;
}

static const char *unit_name(const tr_plan *plan, int unit) {
    return plan->request.model->units[unit].name;
}

static const char *first_of(const tr_plan *plan, int64_t stage, int64_t chunk) {
    return unit_name(plan,
                     plan->chunk_first[tr__stage_chunk(&plan->chunks, stage, chunk)]);
}

static const char *last_of(const tr_plan *plan, int64_t stage, int64_t chunk) {
    int behind = tr__stage_chunk(&plan->chunks, stage, chunk) + 1;
    return unit_name(plan, plan->chunk_first[behind] - 1);
}

static void print_units(const tr_plan *plan, int64_t stage, FILE *to) {
    for (int64_t i = 0; i < plan->chunks.each; i++) {
        const char *first = first_of(plan, stage, i), *last = last_of(plan, stage, i);
        fprintf(to, "%s%s", i > 0 ? ", " : "", first);
        if (strcmp(first, last) != 0) {
            fprintf(to, " .. %s", last);
        }
    }
}

static void print_bubble(const tr_stage_figures *stage, FILE *to) {
    if (stage->step > 0) {
        fprintf(to, "; computes %.6f s; bubble %.6f s, %.1f %% of the step",
                stage->computing, stage->bubble, 100 * stage->bubble / stage->step);
    }
}

void tr__stages_print(const tr_plan *plan, FILE *to) {
    char size[32];
    if (stages_of(plan) > 0) {
        fprintf(to, "\nstages, a rank of each\n");
    }
    for (int64_t s = 0; s < stages_of(plan); s++) {
        const tr_stage_figures *stage = &plan->stages[s];
        fprintf(to, "    %-3" PRId64 " ", s);
        print_units(plan, s, to);
        fprintf(to, ": %.3f GFLOP a step", stage->flops / 1e9);
        for (int space = 0; space < TR_SPACES; space++) {
            tr__print_size(size, sizeof size, stage->bytes[space]);
            if (stage->bytes[space] > 0) {
                fprintf(to, ", %s %s", tr_space_name((tr_space)space), size);
            }
        }
        print_bubble(stage, to);
        fputc('\n', to);
    }
}

static void write_times(const tr_stage_figures *stage, tr_json_writer *to) {
    if (stage->step > 0) {
        tr__json_put_real(to, "seconds", stage->step);
        tr__json_put_real(to, "compute_seconds", stage->computing);
        tr__json_put_real(to, "update_seconds", stage->update);
        tr__json_put_real(to, "exposed_seconds", stage->messages);
        tr__json_put_real(to, "slower_seconds", stage->slower);
        tr__json_put_real(to, "bubble_seconds", stage->bubble);
        tr__json_put_real(to, "bubble_share", stage->bubble / stage->step);
        tr__json_put_real(to, "idle_share", stage->idle / stage->step);
    }
}

// Of several parts of the model, each.
static void write_chunks(const tr_plan *plan, int64_t stage, tr_json_writer *to) {
    if (plan->chunks.each == 1) {
        return;
    }
    tr__json_put_open(to, "chunks", '[');
    for (int64_t i = 0; i < plan->chunks.each; i++) {
        tr__json_line(to, 6);
        tr__json_open(to, '{');
        tr__json_put_text(to, "first_unit", first_of(plan, stage, i));
        tr__json_put_text(to, "last_unit", last_of(plan, stage, i));
        tr__json_close(to, '}');
    }
    tr__json_close(to, ']');
}

static void write_stage(const tr_plan *plan, int64_t s, const tr_stage_figures *stage,
                        tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_open(to, '{');
    int64_t each = plan->chunks.each;
    tr__json_put_text(to, "first_unit", first_of(plan, s, 0));
    tr__json_put_text(to, "last_unit", last_of(plan, s, each - 1));
    write_chunks(plan, s, to);
    tr__json_put_whole(to, "flops", stage->flops);
    tr__json_put_open(to, "bytes", '{');
    for (int space = 0; space < TR_SPACES; space++) {
        tr__json_put_integer(to, tr_space_name((tr_space)space), stage->bytes[space]);
    }
    tr__json_close(to, '}');
    write_times(stage, to);
    tr__json_close(to, '}');
}

void tr__stages_write(const tr_plan *plan, const tr_stage_figures *stages,
                      tr_json_writer *to) {
    tr__json_line(to, 2);
    tr__json_put_open(to, "pipeline", '[');
    for (int64_t s = 0; s < plan->request.mesh.size[TR_AXIS_PIPELINE]; s++) {
        write_stage(plan, s, &stages[s], to);
    }
    tr__json_close(to, ']');
}
