// Budgets, as the bytes that a ledger may have.
#include "base/checked.h"
#include "plan/flow/request.h"
#include "planner/planner.h"

const char *tr__budget_name(int budget) {
    return budget < TR_SPACES ? tr_space_name((tr_space)budget) : "device and host";
}

const char *tr__budget_word(const tr_planner_request *request, int budget) {
    return budget == TR_BUDGET_TOGETHER && request->total ? "total"
                                                          : tr__budget_name(budget);
}

int64_t tr__budget_bytes(int budget, const int64_t bytes[TR_SPACES]) {
    return budget == TR_BUDGET_TOGETHER ? bytes[TR_SPACE_DEVICE] + bytes[TR_SPACE_HOST]
                                        : bytes[budget];
}

int64_t tr__budget_process(const tr_planner_request *request, int budget) {
    return budget == TR_SPACE_HOST || budget == TR_BUDGET_TOGETHER
               ? tr__request_process(&request->plan)
               : 0;
}

int tr__budget_scarce(const tr_planner_request *request) {
    return request->total ? (int)TR_BUDGET_TOGETHER : (int)TR_SPACE_DEVICE;
}

tr_limits tr__planner_limits(const tr_planner_request *request) {
    tr_limits limits;
    for (int b = 0; b < TR_BUDGETS; b++) {
        int64_t has = b < TR_SPACES ? request->budget[b] : request->together;
        bool limited = has != TR_UNLIMITED;
        limits.most[b] = limited ? has - tr__budget_process(request, b) : has;
    }
    return limits;
}

int64_t tr__limits_excess(const tr_limits *limits, const int64_t bytes[TR_SPACES],
                          int64_t excess[TR_BUDGETS]) {
    int64_t sum = 0;
    for (int b = 0; b < TR_BUDGETS; b++) {
        int64_t takes = tr__budget_bytes(b, bytes);
        bool over = limits->most[b] != TR_UNLIMITED && takes > limits->most[b];
        excess[b] = over ? takes - limits->most[b] : 0;
        sum += excess[b];
    }
    return sum;
}

bool tr__made_fits(const tr_limits *limits, const tr_made *made) {
    int64_t excess[TR_BUDGETS];
    return made->possible && tr__limits_excess(limits, made->option.bytes, excess) == 0;
}
