// What is printed of a run's plan, with what the planner chose for it.
#include "run/say/print.h"

#include "base/arguments.h"
#include "base/json_writer.h"
#include "base/sink.h"
#include "plan/print/print.h"
#include "planner/planner.h"

static tr_status can_print(const tr_run_print *p, const char *function, tr_error *err) {
    tr_status status = tr__run_need_resolved(p->run, function, err);
    status = status == TR_OK ? tr__need(p->plan, function, "plan", err) : status;
    return status == TR_OK ? tr__run_check_patterns(p->run, p->plan, err) : status;
}

tr_status tr__run_print(const void *what, FILE *to, tr_error *err) {
    const tr_run_print *p = what;
    tr_status status = tr__plan_print(p->plan, to, err);
    return status == TR_OK && p->run->planned
               ? tr__planned_print(p->run->planned, to, err)
               : status;
}

static tr_status print_json(const void *what, FILE *to, tr_error *err) {
    const tr_run_print *p = what;
    tr_status status = TR_OK;
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    if (p->run->planned) {
        tr__json_line(&w, 2);
        tr__json_key(&w, "planner");
        status = tr__planned_print_json(p->run->planned, to, err);
        w.comma = true; // after what was written beside the writer
    }
    status = status == TR_OK ? tr__plan_write_members(p->plan, &w, err) : status;
    tr__json_line(&w, 0);
    tr__json_close(&w, '}');
    fputc('\n', to);
    return status;
}

tr_status tr_run_print_plan(const tr_run *run, const tr_plan *plan, const tr_sink *to,
                            tr_error *err) {
    static const char name[] = "tr_run_print_plan";
    const tr_run_print what = {run, plan};
    tr_status status = can_print(&what, name, err);
    return status == TR_OK ? tr__sink_print(to, name, tr__run_print, &what, err)
                           : status;
}

tr_status tr_run_print_plan_json(const tr_run *run, const tr_plan *plan,
                                 const tr_sink *to, tr_error *err) {
    static const char name[] = "tr_run_print_plan_json";
    const tr_run_print what = {run, plan};
    tr_status status = can_print(&what, name, err);
    return status == TR_OK ? tr__sink_print(to, name, print_json, &what, err) : status;
}
