// Failures and limits of a rendering.
#include "text/template/run.h"

#include <stdarg.h>
#include <stdio.h>

void tr__jinja_fail(tr_jinja_run *run, const char *format, ...) {
    char what[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (run->status == TR_OK) {
        run->status =
            tr_fail(run->err, TR_DATA, "%s:%d: %s", run->name, run->line, what);
    }
}

void tr__jinja_charge(tr_jinja_run *run, int64_t work) {
    if (work > run->steps) {
        tr__jinja_fail(run, "the template takes too long (over %lld steps)",
                       (long long)TR_JINJA_STEPS_MAX);
        work = run->steps;
    }
    run->steps -= work;
}

void *tr__jinja_take(tr_jinja_run *run, size_t count, size_t size) {
    void *memory = tr__jinja_arena_take(&run->arena, count, size);
    if (!memory && run->arena.failed && run->status == TR_OK) {
        run->status = tr_fail(run->err, TR_MEMORY, "no memory to render %s", run->name);
    }
    if (!memory) {
        tr__jinja_fail(run, "the template needs too much memory (%d MiB at most)",
                       TR_JINJA_MEMORY_MAX >> 20);
    }
    return memory;
}

bool tr__jinja_enter(tr_jinja_run *run, int line) {
    run->line = line;
    tr__jinja_charge(run, 1);
    if (++run->depth > TR_JINJA_DEPTH_MAX) {
        tr__jinja_fail(run, "calls and expressions are nested too deeply");
    }
    return run->status == TR_OK;
}
