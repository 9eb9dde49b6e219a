// Nothing fits: what comes nearest, and what would make it fit.
#include "base/memory.h"
#include "base/text.h"
#include "models/models.h"
#include "plan/flow/passes.h"
#include "planner/planner.h"
#include "sim/simulate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NEAREST = 3, SIZE_TEXT = 32, TEXT = 256 };

// ---- where a plan is fullest

// The two largest categories.
static void say_categories(const tr_plan *plan, char *dst, size_t size) {
    const int64_t *bytes = plan->ledger.bytes[TR_SPACE_DEVICE];
    int first = -1, second = -1;
    char a[SIZE_TEXT], b[SIZE_TEXT];
    for (int c = 0; c < TR_LEDGER_COUNT; c++) {
        if (first < 0 || bytes[c] > bytes[first]) {
            second = first;
            first = c;
        } else if (second < 0 || bytes[c] > bytes[second]) {
            second = c;
        }
    }
    tr__print_size(a, sizeof a, bytes[first]);
    tr__print_size(b, sizeof b, bytes[second]);
    snprintf(dst, size, "%s %s, %s %s", tr_ledger_name((tr_ledger_category)first), a,
             tr_ledger_name((tr_ledger_category)second), b);
}

tr_status tr__planner_fullest(const tr_search *search, const tr_planner_option *option,
                              char *dst, size_t size, tr_error *err) {
    tr_plan *plan = NULL;
    tr_sequence_kind kind = TR_SEQUENCE_TRAIN;
    int32_t at = 0;
    tr_point point = tr__point_of(search->request, option->value);
    tr_status status = TR_OK;
    dst[0] = '\0';
    if (search->request->sliced) {
        status = tr__model_slice(search->request->sliced, (int)point.slices, err);
    }
    if (status == TR_OK) {
        status = tr__plan_draft(&point.plan, &plan, err);
    }
    if (status == TR_OK) {
        status = tr__plan_fullest(plan, TR_SPACE_DEVICE, &kind, &at, err);
    }
    if (status == TR_OK && plan->sequences[kind].count > 0) {
        const tr_plan_step *step = &plan->sequences[kind].steps[at];
        const char *subject = tr__step_subject(plan, step);
        char parts[TEXT];
        say_categories(plan, parts, sizeof parts);
        snprintf(dst, size, "%s%s%s, with %s", tr__verb_name(step->label.verb),
                 subject ? " of " : "", subject ? subject : "", parts);
    }
    tr_plan_destroy(plan);
    return status;
}

// ---- the message

typedef struct text {
    char words[TR_MESSAGE_MAX];
    size_t used;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format,
                                                      ...) {
    va_list args;
    if (t->used + 1 < sizeof t->words) {
        va_start(args, format);
        int more =
            vsnprintf(t->words + t->used, sizeof t->words - t->used, format, args);
        va_end(args);
        t->used += more > 0 ? (size_t)more : 0;
    }
}

static void add_budgets(text *t, const tr_planner_request *request) {
    const char *comma = "";
    char size[SIZE_TEXT];
    for (int b = 0; b < TR_BUDGETS; b++) {
        int64_t budget = b < TR_SPACES ? request->budget[b] : request->together;
        bool said = budget != TR_UNLIMITED && (b != TR_SPACE_NVME || budget > 0);
        if (said) {
            tr__print_size(size, sizeof size, budget);
            add(t, "%s%s %s", comma, tr__budget_word(request, b), size);
            comma = ", ";
        }
    }
}

// "device 12.3 MiB more, host 1.0 GiB more"
static void add_excess(text *t, const tr_planner_request *request,
                       const tr_limits *limits, const tr_planner_option *o) {
    int64_t excess[TR_BUDGETS];
    const char *comma = "";
    char size[SIZE_TEXT];
    tr__limits_excess(limits, o->bytes, excess);
    for (int b = 0; b < TR_BUDGETS; b++) {
        if (excess[b] > 0) {
            tr__print_size(size, sizeof size, excess[b]);
            add(t, "%s%s %s more", comma, tr__budget_word(request, b), size);
            comma = ", ";
        }
    }
}

static void add_nearest(text *t, const tr_search *search, const tr_limits *limits,
                        const tr_made *near, size_t count) {
    unsigned all = (1u << TR_DIMENSIONS) - 1;
    add(t, "\n    nearest plans, and what they lack:");
    for (size_t i = 0; i < count; i++) {
        char words[TEXT];
        tr_point point = tr__point_of(search->request, near[i].option.value);
        tr__point_say(&point, search->request->free ? search->request->free : all,
                      words, sizeof words);
        add(t, "\n        %zu. ", i + 1);
        add_excess(t, search->request, limits, &near[i].option);
        add(t, ": %s", words);
    }
}

static tr_status add_smallest(text *t, tr_search *search, int budget,
                              const tr_made *least, tr_error *err) {
    int64_t bytes = tr__budget_bytes(budget, least->option.bytes) +
                    tr__budget_process(search->request, budget);
    char where[TEXT], size[SIZE_TEXT];
    tr__print_size(size, sizeof size, bytes);
    add(t, "\n    the smallest %s%s within the other limits: %s (%" PRId64 " bytes)",
        tr__budget_word(search->request, budget), budget < TR_SPACES ? " budget" : "",
        size, bytes);
    if (budget == TR_SPACE_HOST || budget == TR_SPACE_NVME) {
        return TR_OK;
    }
    tr_status status =
        tr__planner_fullest(search, &least->option, where, sizeof where, err);
    add(t, "\n        the device's fullest moment: %s", where);
    return status;
}

// The budget that the plan exceeds: the one that the user has least of, or another.
static int lacking(const tr_search *search, const tr_limits *limits,
                   const tr_made *near) {
    int64_t excess[TR_BUDGETS];
    int budget = tr__budget_scarce(search->request), other = 0;
    tr__limits_excess(limits, near->option.bytes, excess);
    while (other + 1 < TR_BUDGETS && excess[other] == 0) {
        other++;
    }
    return excess[budget] > 0 ? budget : other;
}

static tr_status add_help(text *t, tr_search *search, const tr_limits *limits,
                          const tr_made *near, tr_error *err) {
    char words[TR_MESSAGE_MAX / 2];
    int budget = lacking(search, limits, near);
    tr_made least;
    bool found = false;
    tr_status status = tr__planner_least(search, limits, budget, &least, &found, err);
    int64_t base =
        tr__budget_bytes(budget, found ? least.option.bytes : near->option.bytes);
    if (status == TR_OK && found) {
        status = add_smallest(t, search, budget, &least, err);
    }
    if (status == TR_OK) {
        status = tr__planner_levers(search, budget, base, words, sizeof words, err);
        if (words[0]) {
            add(t, "\n    what would help, each by itself (%s):%s",
                tr__budget_word(search->request, budget), words);
        }
    }
    return status;
}

// What nobody chooses is as the run file has it: so the reason is the user's.
tr_status tr__planner_impossible(const tr_search *search, tr_error *err) {
    tr_point point = tr__planner_start(search->request);
    tr_plan *plan = NULL;
    tr_error why = {0};
    tr_status status = tr__plan_draft(&point.plan, &plan, &why);
    if (status == TR_OK) {
        status = tr__simulate_check(plan, search->request->machine, &why);
    }
    tr_plan_destroy(plan);
    why = why.status == TR_OK ? search->why : why;
    return tr_fail(err, status == TR_MEMORY ? TR_MEMORY : TR_USAGE, "%s",
                   why.message[0] ? why.message : "no plan is possible");
}

tr_status tr__planner_refuse(tr_search *search, const tr_limits *limits,
                             tr_error *err) {
    text t = {.used = 0};
    tr_error problem = {0};
    tr_made near[NEAREST];
    size_t count = 0;
    tr_status status =
        tr__search_nearest(search, limits, 0, NEAREST, near, &count, &problem);
    if (status == TR_OK && count == 0) {
        return tr__planner_impossible(search, err);
    }
    add(&t, "%s the budgets (",
        search->request->free ? "no plan fits" : "the plan does not fit");
    add_budgets(&t, search->request);
    add(&t, ")");
    if (status == TR_OK && count > 0) {
        add_nearest(&t, search, limits, near, count);
        status = add_help(&t, search, limits, near, &problem);
    }
    return status == TR_OK ? tr_fail(err, TR_BUDGET, "%s", t.words)
                           : tr_fail(err, status, "%s", problem.message);
}
