// What is printed of a plan and of the planner's choice, for the caller's sink.
#include "base/sink.h"
#include "plan/print/print.h"
#include "planner/planner.h"

static tr_status print_plan(const void *plan, FILE *to, tr_error *err) {
    return tr__plan_print(plan, to, err);
}

static tr_status print_plan_json(const void *plan, FILE *to, tr_error *err) {
    return tr__plan_print_json(plan, to, err);
}

static tr_status print_planned(const void *planned, FILE *to, tr_error *err) {
    return tr__planned_print(planned, to, err);
}

static tr_status print_planned_json(const void *planned, FILE *to, tr_error *err) {
    return tr__planned_print_json(planned, to, err);
}

tr_status tr_plan_print(const tr_plan *plan, const tr_sink *to, tr_error *err) {
    return tr__sink_print(to, "tr_plan_print", print_plan, plan, err);
}

tr_status tr_plan_print_json(const tr_plan *plan, const tr_sink *to, tr_error *err) {
    return tr__sink_print(to, "tr_plan_print_json", print_plan_json, plan, err);
}

tr_status tr_planned_print(const tr_planned *planned, const tr_sink *to,
                           tr_error *err) {
    return tr__sink_print(to, "tr_planned_print", print_planned, planned, err);
}

tr_status tr_planned_print_json(const tr_planned *planned, const tr_sink *to,
                                tr_error *err) {
    return tr__sink_print(to, "tr_planned_print_json", print_planned_json, planned,
                          err);
}
