// What would let a plan fit that does not, each thing by itself: all of it is planned.
#include "base/memory.h"
#include "base/text.h"
#include "planner/planner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PLANS_TRIED = 60, SIZE_TEXT = 32 };

// The list, and what it is compared with.
typedef struct levers {
    const tr_search *search;
    int budget;   // that is lacking
    int64_t base; // of it the least that a plan takes
    char *words;
    size_t size, used;
} levers;

__attribute__((format(printf, 2, 3))) static void add(levers *l, const char *format,
                                                      ...) {
    va_list args;
    va_start(args, format);
    int more = vsnprintf(l->words + l->used, l->size - l->used, format, args);
    va_end(args);
    l->used += more > 0 && l->used + (size_t)more < l->size ? (size_t)more : 0;
    l->words[l->used] = '\0'; // no half of a line
}

tr_status tr__planner_least(tr_search *search, const tr_limits *limits, int budget,
                            tr_made *out, bool *found, tr_error *err) {
    tr_limits others = *limits;
    tr_made near;
    size_t count = 0;
    int64_t excess[TR_BUDGETS];
    tr_status status = tr__search_nearest(search, limits, 0, 1, &near, &count, err);
    *found = false;
    if (status != TR_OK || count == 0) {
        return status;
    }
    tr__limits_excess(limits, near.option.bytes, excess);
    for (int b = 0; b < TR_BUDGETS; b++) { // one thing at a time
        others.most[b] = excess[b] > 0 ? TR_UNLIMITED : others.most[b];
    }
    return tr__search_smallest(search, &others, budget, out, found, err);
}

// The fastest plan that fits, or else the smallest.
static tr_status try_lever(const levers *l, const tr_planner_request *request,
                           tr_made *made, bool *found, bool *fits, tr_error *err) {
    tr_search *search = NULL;
    tr_error why = {0};
    tr_limits limits = tr__planner_limits(request);
    tr_status status = tr__search_begin(request, request->free, &search, &why);
    *found = *fits = false;
    if (status == TR_OK && search->group_count > 0) {
        status = tr__search_fastest(search, &limits, PLANS_TRIED, made, fits, &why);
        *found = *fits;
    }
    if (status == TR_OK && search->group_count > 0 && !*fits) {
        status = tr__planner_least(search, &limits, l->budget, made, found, &why);
    }
    tr__search_end(search);
    return status == TR_OK || status == TR_USAGE
               ? TR_OK
               : tr_fail(err, status, "%s", why.message);
}

static void add_lever(levers *l, const char *words, const tr_made *made, bool fits) {
    const tr_search *search = l->search;
    tr_limits limits = tr__planner_limits(search->request);
    int64_t bytes = tr__budget_bytes(l->budget, made->option.bytes);
    char less[SIZE_TEXT], more[SIZE_TEXT];
    tr__print_size(less, sizeof less, l->base - bytes);
    tr__print_size(more, sizeof more, bytes - limits.most[l->budget]);
    if (fits && bytes >= l->base) {
        add(l, "\n        %s: it fits", words);
    } else if (fits) {
        add(l, "\n        %s: %s less, it fits", words, less);
    } else if (bytes < l->base && bytes <= limits.most[l->budget]) {
        add(l, "\n        %s: %s less, but more elsewhere", words, less);
    } else if (bytes < l->base) {
        add(l, "\n        %s: %s less, %s are still missing", words, less, more);
    }
}

// Are there other meshes to choose from?
static bool is_choice(const tr_planner_request *request, tr_dimension_name d) {
    int64_t *values = tr__calloc(TR_VALUES_MAX, sizeof *values);
    tr_point start = tr__planner_start(request);
    size_t count = values ? tr__dimension_values(request, d, &start, values) : 0;
    tr__free(values);
    return count > 1;
}

// What the user has fixed and the planner could choose.
static tr_status add_fixed(levers *l, tr_dimension_name d, tr_error *err) {
    tr_planner_request request = *l->search->request;
    char words[TR_LEVER_WORDS], value[TR_LEVER_WORDS / 2];
    bool found, fits;
    tr_made made;
    request.free |= 1u << d;
    if (tr__plan_settings[d].of_mesh && !is_choice(&request, d)) {
        return TR_OK;
    }
    tr_status status = try_lever(l, &request, &made, &found, &fits, err);
    if (status == TR_OK && found) {
        tr__plan_setting_show(&tr__plan_settings[d], made.option.value[d], value,
                              sizeof value);
        snprintf(words, sizeof words, "%s %s", tr__plan_settings[d].key, value);
        add_lever(l, words, &made, fits);
    }
    return status;
}

// What only the user can change.
static tr_status add_others(levers *l, tr_error *err) {
    const tr_planner_request *request = l->search->request;
    tr_planner_lever *all = tr__calloc(TR_LEVERS_MAX, sizeof *all);
    tr_status status = all ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a plan");
    size_t count = all ? request->levers(request->lever_user, request, all) : 0;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        bool found, fits;
        tr_made made;
        status = try_lever(l, &all[i].request, &made, &found, &fits, err);
        if (status == TR_OK && found) {
            add_lever(l, all[i].words, &made, fits);
        }
    }
    tr__free(all);
    return status;
}

tr_status tr__planner_levers(const tr_search *search, int budget, int64_t base,
                             char *dst, size_t size, tr_error *err) {
    levers l = {.search = search, .budget = budget, .base = base};
    l.words = dst;
    l.size = size;
    dst[0] = '\0';
    tr_status status = TR_OK;
    for (int d = 0; d < TR_DIMENSIONS && status == TR_OK; d++) {
        if (!(search->request->free >> d & 1)) {
            status = add_fixed(&l, (tr_dimension_name)d, err);
        }
    }
    return status == TR_OK && search->request->levers ? add_others(&l, err) : status;
}
