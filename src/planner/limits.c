// Budgets, as the bytes that a ledger may have.
#include "base/checked.h"
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

int64_t tr__budget_process(int budget) {
    return budget == TR_SPACE_HOST || budget == TR_BUDGET_TOGETHER ? TR_PROCESS_BYTES
                                                                   : 0;
}

int tr__budget_scarce(const tr_planner_request *request) {
    return request->total ? (int)TR_BUDGET_TOGETHER : (int)TR_SPACE_DEVICE;
}

static int64_t without_process(int64_t budget) {
    return budget == TR_UNLIMITED ? budget : budget - TR_PROCESS_BYTES;
}

tr_limits tr__planner_limits(const tr_planner_request *request) {
    tr_limits limits;
    for (int s = 0; s < TR_SPACES; s++) {
        limits.most[s] = request->budget[s];
    }
    limits.most[TR_SPACE_HOST] = without_process(request->budget[TR_SPACE_HOST]);
    limits.most[TR_BUDGET_TOGETHER] = without_process(request->together);
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
