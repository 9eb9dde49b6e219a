// What a caller says of a run, call by call, and asks of what has been said.
#include "base/arguments.h"
#include "base/files.h"
#include "base/memory.h"
#include "graph/model.h"
#include "models/models.h"
#include "run/keys/keys.h"
#include "run/run.h"

#include <string.h>

// from: of which the same was said; NULL: nothing was said.
static tr_status make_run(const tr_given *from, tr_run **out, tr_error *err) {
    tr_run *run = tr__calloc(1, sizeof *run);
    if (!run) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    run->lock = -1;
    tr_status status = from ? tr__given_copy(&run->given, from, err)
                            : tr__given_begin(&run->given, err);
    if (status != TR_OK) {
        tr_run_destroy(run);
        return status;
    }
    tr__run_forget(run);
    *out = run;
    return TR_OK;
}

tr_status tr_run_create(tr_run **out, tr_error *err) {
    tr_status status = tr__need(out, "tr_run_create", "out", err);
    return status == TR_OK ? make_run(NULL, out, err) : status;
}

tr_status tr__run_again(const tr_run *run, tr_run **out, tr_error *err) {
    return make_run(&run->given, out, err);
}

// May more be said of the run, by this function with that argument?
static tr_status is_open(tr_run *run, const void *argument, const char *function,
                         const char *name, tr_error *err) {
    tr_status status = tr__need(run, function, "run", err);
    if (status == TR_OK && run->resolved) {
        status = tr_fail(err, TR_USAGE,
                         "%s: the run is resolved and changes no more; create another",
                         function);
    }
    status = status == TR_OK ? tr__need(argument, function, name, err) : status;
    if (status == TR_OK) {
        tr__run_forget(run); // what tr_run_get has read
    }
    return status;
}

static tr_status has_none(const tr_run *run, const char *function, tr_error *err) {
    return run->given.text
               ? tr_fail(err, TR_USAGE,
                         "%s: the run has a run file or its text already; create "
                         "another run, or change keys by tr_run_set",
                         function)
               : TR_OK;
}

tr_status tr_run_load_file(tr_run *run, const char *path, tr_error *err) {
    static const char name[] = "tr_run_load_file";
    tr_error found = {0};
    tr_status status = is_open(run, path, name, "path", err);
    status = status == TR_OK ? has_none(run, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_given *given = &run->given;
    char *file = tr__strdup(path);
    status = file ? tr__file_read(path, TR_CONFIG_BYTES_MAX, &given->text,
                                  &given->bytes, &found)
                  : tr_fail(&found, TR_MEMORY, "no memory for a run");
    if (status != TR_OK) {
        tr__free(file);
        given->text = NULL;
        // A run file that is not there is a wrong argument, not a failing disk.
        return tr_fail(err, status == TR_IO ? TR_USAGE : status, "%s", found.message);
    }
    given->file = file;
    return TR_OK;
}

tr_status tr_run_load_text(tr_run *run, const char *text, tr_error *err) {
    static const char name[] = "tr_run_load_text";
    tr_status status = is_open(run, text, name, "text", err);
    status = status == TR_OK ? has_none(run, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    run->given.text = tr__strdup(text);
    run->given.bytes = strlen(text);
    return run->given.text ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a run");
}

// The texts of `value` are the caller's.
static tr_status set(tr_run *run, const tr_given_value *value, const char *function,
                     tr_error *err) {
    tr_status status = is_open(run, value->key, function, "key", err);
    if (status == TR_OK) {
        status = tr__need(value->value, function, "value", err);
    }
    if (status == TR_OK) {
        status = tr__config_knows(tr__key_tables, TR_KEY_TABLES, value->key,
                                  run->given.source, err);
    }
    return status == TR_OK ? tr__given_add(&run->given, value, err) : status;
}

// Nothing is written through the pointers of a tr_given_value that is only read.
static char *borrowed(const char *text) {
    return (char *)(uintptr_t)text;
}

tr_status tr_run_set(tr_run *run, const char *key, const char *value, tr_error *err) {
    return set(run, &(tr_given_value){.key = borrowed(key), .value = borrowed(value)},
               "tr_run_set", err);
}

tr_status tr_run_set_text(tr_run *run, const char *key, const char *text,
                          tr_error *err) {
    return set(run,
               &(tr_given_value){
                   .key = borrowed(key), .value = borrowed(text), .literal = true},
               "tr_run_set_text", err);
}

tr_status tr_run_add_text(tr_run *run, const char *key, const char *text,
                          tr_error *err) {
    return set(run,
               &(tr_given_value){.key = borrowed(key),
                                 .value = borrowed(text),
                                 .literal = true,
                                 .append = true},
               "tr_run_add_text", err);
}

tr_status tr_run_assign(tr_run *run, const char *assignment, tr_error *err) {
    tr_status status = is_open(run, assignment, "tr_run_assign", "assignment", err);
    if (status != TR_OK) {
        return status;
    }
    const char *equals = strchr(assignment, '=');
    if (!equals) {
        return tr_fail(err, TR_USAGE, "%s: \"%.100s\" is not KEY.PATH=VALUE",
                       run->given.source, assignment);
    }
    char *key = tr__format("%.*s", (int)(equals - assignment), assignment);
    if (!key) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    status = set(run, &(tr_given_value){.key = key, .value = borrowed(equals + 1)},
                 "tr_run_assign", err);
    tr__free(key);
    return status;
}

tr_status tr_run_name_source(tr_run *run, const char *source, tr_error *err) {
    tr_status status = is_open(run, source, "tr_run_name_source", "source", err);
    char *copy = status == TR_OK ? tr__strdup(source) : NULL;
    if (status != TR_OK || !copy) {
        return status != TR_OK ? status : tr_fail(err, TR_MEMORY, "no memory");
    }
    tr__free(run->given.source);
    run->given.source = copy;
    return TR_OK;
}

tr_status tr_run_give(tr_run *run, const tr_run_parts *parts, tr_error *err) {
    static const tr_sized known = {"tr_run_parts", "TR_RUN_PARTS_INIT",
                                   sizeof(tr_run_parts), 0};
    tr_status status = is_open(run, parts, "tr_run_give", "parts", err);
    if (status == TR_OK) {
        status = tr__need_sized(parts, &known, "tr_run_give", err);
    }
    if (status == TR_OK && parts->model) {
        status = tr__model_need(parts->model, "tr_run_give", err);
    }
    if (status == TR_OK) {
        run->given.parts = *parts;
    }
    return status;
}

tr_status tr_run_get(tr_run *run, const char *key, const char **value,
                     const char **origin, tr_error *err) {
    tr_status status = tr__need(run, "tr_run_get", "run", err);
    status = status == TR_OK ? tr__need(key, "tr_run_get", "key", err) : status;
    if (status == TR_OK && !run->config) {
        status = tr__given_read(&run->given, false, &run->config, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr__free(run->told_value);
    tr__free(run->told_origin);
    run->told_value = run->told_origin = NULL;
    status =
        tr__config_tell(run->config, key, &run->told_value, &run->told_origin, err);
    if (status == TR_OK && value) {
        *value = run->told_value;
    }
    if (status == TR_OK && origin) {
        *origin = run->told_origin;
    }
    return status;
}
