// A resumed run beside the one that its checkpoint is of: which keys have changed.
#include "base/files.h"
#include "base/memory.h"
#include "run/run.h"

#include <jansson.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 12, NAME_BYTES = 256, VALUE_BYTES = 120, FILE_MAX = 16 << 20 };

typedef struct comparison {
    const tr_log *log;
    int told, more;
} comparison;

// What says where a value came from, or where the run stands.
static bool is_apart(const char *path) {
    return strcmp(path, "origins") == 0 || strcmp(path, "out") == 0;
}

// "not given" for NULL; dst: [VALUE_BYTES].
static void show(const json_t *value, char *dst) {
    char *text =
        value
            ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9))
            : NULL;
    snprintf(dst, VALUE_BYTES, "%s", text ? text : value ? "?" : "not given");
    free(text);
}

static void tell(comparison *c, const char *path, const json_t *then,
                 const json_t *now) {
    char was[VALUE_BYTES], is[VALUE_BYTES];
    if (c->told == LINES_MAX) {
        c->more++;
        return;
    }
    if (c->told++ == 0) {
        tr__note(c->log, "changed since the checkpoint's run:");
    }
    show(then, was);
    show(now, is);
    // What followed from other keys is told by its own name.
    bool derived = strncmp(path, "derived.", 8) == 0;
    tr__note(c->log, "    %s: %s -> %s", path + (derived ? 8 : 0), was, is);
}

static void compare(comparison *c, const char *path, const json_t *then,
                    const json_t *now);

// Members of either; those of both are compared once.
static void compare_members(comparison *c, const char *path, const json_t *then,
                            const json_t *now) {
    const char *name;
    json_t *member;
    char inner[NAME_BYTES];
    const char *dot = path[0] ? "." : "";
    json_object_foreach((json_t *)now, name, member) {
        snprintf(inner, sizeof inner, "%s%s%s", path, dot, name);
        compare(c, inner, json_object_get(then, name), member);
    }
    json_object_foreach((json_t *)then, name, member) {
        snprintf(inner, sizeof inner, "%s%s%s", path, dot, name);
        if (!json_object_get(now, name)) {
            compare(c, inner, member, NULL);
        }
    }
}

static void compare(comparison *c, const char *path, const json_t *then,
                    const json_t *now) {
    if (is_apart(path)) {
        return;
    }
    if ((!then || json_is_object(then)) && (!now || json_is_object(now))) {
        compare_members(c, path, then, now);
    } else if (!then || !now || !json_equal(then, now)) {
        tell(c, path, then, now);
    }
}

// The run.json of the out folder that a checkpoint is in; NULL: there is none to read.
static json_t *read_then(const char *checkpoint) {
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    if (tr__path_join(path, sizeof path, checkpoint, "../../run.json", NULL) != TR_OK ||
        tr__file_read(path, FILE_MAX, &text, &bytes, NULL) != TR_OK) {
        return NULL;
    }
    json_t *then = json_loadb(text, bytes, 0, NULL);
    tr__free(text);
    return then;
}

tr_status tr__run_say_changes(const tr_run *run, const char *checkpoint,
                              tr_error *err) {
    char *text = NULL;
    json_t *then = read_then(checkpoint);
    tr_status status =
        then ? tr__config_write_resolved(run->config, &text, err) : TR_OK;
    json_t *now = text ? json_loads(text, 0, NULL) : NULL;
    tr__free(text);
    if (then && now) {
        comparison c = {&run->log, 0, 0};
        compare(&c, "", then, now);
        if (c.more > 0) {
            tr__note(&run->log, "    ... and %d more", c.more);
        }
    }
    json_decref(now);
    json_decref(then);
    return status;
}
