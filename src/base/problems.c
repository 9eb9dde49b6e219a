#include "base/problems.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { REST_BYTES = 64 }; // kept free for how many there are

static const char between[] = "\n    ";

void tr__problems_add(tr_problems *problems, const tr_error *err) {
    if (err->status == TR_OK) {
        return;
    }
    size_t more = strlen(between) + strlen(err->message);
    size_t room = sizeof problems->text - 2 * REST_BYTES;
    bool first = problems->count == 0, all_told = problems->told == problems->count;
    bool fits = problems->told < TR_PROBLEMS_MAX && problems->used + more < room;
    if (first) {
        problems->status = err->status;
    }
    if (first || (all_told && fits)) {
        snprintf(problems->text + problems->used, room - problems->used, "%s%s",
                 between, err->message);
        problems->used += strlen(problems->text + problems->used);
        problems->told++;
    }
    problems->count++;
}

tr_status tr__problems_end(const tr_problems *problems, tr_error *err) {
    char rest[REST_BYTES] = "";
    if (problems->count == 0) {
        return TR_OK;
    }
    if (problems->count == 1) {
        return tr_fail(err, problems->status, "%s", problems->text + strlen(between));
    }
    if (problems->count > problems->told) {
        snprintf(rest, sizeof rest, "%s... and %zu more", between,
                 problems->count - problems->told);
    }
    return tr_fail(err, problems->status, "%zu problems:%s%s", problems->count,
                   problems->text, rest);
}
