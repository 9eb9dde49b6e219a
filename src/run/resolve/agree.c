// Before the first step: do all ranks run the same run, on the same data, by plans that
// fit together? Each writes down what it knows, a fact a line; all compare theirs with
// rank 0's.
#include "backend/backend.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"
#include "planner/settings.h"
#include "run/run.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256 };

// A line: one of these, the fact's name, a tab, its value.
typedef enum concern { RUN = 'r', DATA = 'd', BITS = 'b', PLAN = 'p' } concern;

static const char *advice(char of) {
    switch ((concern)of) {
    case RUN:
        return "start all ranks with the same run file and options";
    case DATA:
        return "all ranks must find the same data";
    case BITS:
        return "in reproducible mode all ranks must compute in the same way";
    case PLAN:
        return "the ranks' plans do not fit together: are they all the same program?";
    }
    return "";
}

// ---- facts

// What may well be another text on another machine, or is written down apart.
static bool is_apart(const char *name) {
    static const char *const names[] = {"data.train",       "data.validation",
                                        "data.labels",      "data.validation_labels",
                                        "data.tokenizer",   "execution.threads",
                                        "memory.nvme.path", "derived",
                                        "origins"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

// An object's members one by one.
static void put_value(FILE *to, const char *name, json_t *value) {
    const char *key;
    json_t *member;
    // A model's folder may have another path on another machine.
    bool folder = strcmp(name, "model") == 0 && json_is_string(value);
    if (is_apart(name) || folder) {
        return;
    }
    if (!json_is_object(value)) {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        fprintf(to, "%c%s\t%s\n", RUN, name, text ? text : "?");
        free(text);
        return;
    }
    json_object_foreach(value, key, member) {
        char path[NAME_MAX_BYTES];
        snprintf(path, sizeof path, "%s%s%s", name, name[0] ? "." : "", key);
        put_value(to, path, member);
    }
}

static void put_number(FILE *to, concern of, const char *name, int64_t value) {
    fprintf(to, "%c%s\t%" PRId64 "\n", (char)of, name, value);
}

static tr_status put_run(FILE *to, const tr_run *run, tr_error *err) {
    char *text = NULL;
    tr_status status = tr__config_write_resolved(run->config, &text, err);
    if (status != TR_OK) {
        return status;
    }
    json_t *all = json_loads(text, 0, NULL);
    tr__free(text);
    if (!all) {
        return tr_fail(err, TR_MEMORY, "no memory to compare the run among ranks");
    }
    put_value(to, "", all);
    json_decref(all);
    fprintf(to, "%c--resume\t%s\n", RUN, run->settings.resume);
    fprintf(to, "%c--trace\t%s\n", RUN,
            run->settings.trace ? run->settings.trace : "not given");
    put_number(to, RUN, "--trace-step", run->settings.trace_step);
    if (run->model->config_json) {
        fprintf(to, "%cmodel\tof hash %016" PRIx64 "\n", RUN,
                tr__hash_text(run->model->config_json));
    }
    return TR_OK;
}

static void put_data(FILE *to, const char *name, const tr_dataset *data) {
    if (data) {
        fprintf(to, "%c%s\tdata of hash %016" PRIx64 " (%" PRId64 " samples)\n", DATA,
                name, tr_dataset_hash(data), tr_dataset_samples(data));
    }
}

static void put_plan(FILE *to, const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    const tr_point point = {.plan = *r};
    for (int axis = 0; axis < TR_AXES; axis++) {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof name, "ranks on the %s axis",
                 tr_axis_name((tr_axis)axis));
        put_number(to, PLAN, name, r->mesh.size[axis]);
    }
    for (int i = 0; i < TR_PLAN_SETTINGS; i++) {
        const tr_plan_setting *setting = &tr__plan_settings[i];
        if (setting->agreed) {
            put_number(to, PLAN, setting->key, setting->get(&point));
        }
    }
    if (r->reproducible) {
        put_number(to, BITS, "execution.threads", r->threads);
        fprintf(to, "%cthe instruction set\t%s\n", BITS,
                tr__target_name(&plan->target));
    }
}

// *text is freed with free().
static tr_status write_facts(const tr_run *run, const tr_plan *plan, char **text,
                             tr_error *err) {
    size_t bytes = 0;
    FILE *to = open_memstream(text, &bytes);
    if (!to) {
        return tr_fail(err, TR_MEMORY, "no memory to compare the run among ranks");
    }
    tr_status status = put_run(to, run, err);
    put_data(to, "data.train", run->train);
    put_data(to, "data.validation", run->validation);
    put_plan(to, plan);
    if (fclose(to) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory to compare the run among ranks");
    }
    return status;
}

// ---- comparing

// The line of `text` about the same fact; NULL: none.
static const char *find(const char *text, const char *line) {
    size_t name = strcspn(line, "\t") + 1;
    while (*text && strncmp(text, line, name) != 0) {
        text += strcspn(text, "\n") + 1;
    }
    return *text ? text : NULL;
}

// The value of a line, as much of it as is shown; NULL: "not given".
static const char *show(const char *line, int *length) {
    static const char none[] = "not given";
    enum { SHOWN = 120 };
    const char *value = line ? line + strcspn(line, "\t") + 1 : none;
    size_t bytes = strcspn(value, "\n");
    *length = bytes > SHOWN ? SHOWN : (int)bytes;
    return value;
}

static tr_status differ(const char *line, const char *own, const char *first,
                        tr_error *err) {
    int own_length, first_length;
    const char *mine = show(own, &own_length), *theirs = show(first, &first_length);
    return tr_fail(err, TR_COMM, "%.*s is %.*s here, and %.*s on rank 0: %s",
                   (int)strcspn(line, "\t") - 1, line + 1, own_length, mine,
                   first_length, theirs, advice(line[0]));
}

// The first fact of `lines` that is another in `others`.
static tr_status compare(const char *lines, const char *others, bool own,
                         tr_error *err) {
    for (const char *line = lines; *line; line += strcspn(line, "\n") + 1) {
        const char *other = find(others, line);
        size_t bytes = strcspn(line, "\n") + 1;
        if (!other || strncmp(other, line, bytes) != 0) {
            return differ(line, own ? line : other, own ? other : line, err);
        }
    }
    return TR_OK;
}

// Rank 0's facts to all, who free them with tr__free.
static tr_status share(tr_comm *comm, const char *own, char **first, tr_error *err) {
    tr_error mine = {0};
    int64_t bytes = (int64_t)strlen(own) + 1;
    tr_status status = tr__comm_broadcast(comm, 0, &bytes, sizeof bytes, err);
    if (status != TR_OK) {
        return status;
    }
    *first = tr__calloc((size_t)bytes, 1);
    if (!*first) {
        status = tr_fail(&mine, TR_MEMORY, "no memory to compare the run among ranks");
    }
    status = tr__agree(comm, status, &mine, err);
    if (status == TR_OK && tr__comm_leads(comm)) {
        memcpy(*first, own, (size_t)bytes);
    }
    return status == TR_OK ? tr__comm_broadcast(comm, 0, *first, (size_t)bytes, err)
                           : status;
}

// ---- what ranks exchange

// Groups compare each with its first member: their plans need not be like those of
// other groups.
static tr_status compare_groups(const tr_mesh *mesh, const tr_plan_digest *all,
                                tr_error *err) {
    const tr_plan_digest *own = &all[tr_mesh_rank(mesh)];
    int64_t first = 0;
    for (tr_axes axes = 1; axes < TR_AXES_SETS; axes++) {
        first = tr__mesh_rank_of(mesh, axes, 0);
        uint64_t mine = own->of_group[axes], theirs = all[first].of_group[axes];
        if (mine != theirs) {
            return tr_fail(
                err, TR_COMM,
                "what ranks on the axes \"%s\" exchange is a sequence of "
                "hash %016" PRIx64 " here, and of hash %016" PRIx64 " on rank %lld: %s",
                tr__axes_name(axes), mine, theirs, (long long)first, advice(PLAN));
        }
    }
    first = tr__mesh_rank_of(mesh, TR_ON_DATA | TR_ON_TENSOR, 0);
    return own->all == all[first].all
               ? TR_OK
               : tr_fail(err, TR_COMM,
                         "the order in which ranks exchange is of hash %016" PRIx64
                         " here, and of hash %016" PRIx64 " on rank %lld: %s",
                         own->all, all[first].all, (long long)first, advice(PLAN));
}

static tr_status agree_on_exchanges(tr_comm *comm, const tr_plan *plan, tr_error *err) {
    tr_plan_digest own, *all = tr__calloc((size_t)tr__comm_count(comm), sizeof *all);
    tr_error mine = {0};
    tr_status status =
        all ? TR_OK
            : tr_fail(&mine, TR_MEMORY, "no memory to compare the run among ranks");
    tr__plan_exchanges(plan, &own);
    status = tr__agree(comm, status, &mine, err);
    if (status == TR_OK) {
        status = tr__comm_all_gather(comm, &own, sizeof own, all, err);
    }
    if (status == TR_OK) {
        status = compare_groups(&plan->request.mesh, all, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    tr__free(all);
    return status;
}

tr_status tr__run_agree(const tr_run *run, const tr_plan *plan, tr_error *err) {
    char *own = NULL, *first = NULL;
    tr_error mine = {0};
    if (tr__comm_count(run->comm) == 1) {
        return TR_OK;
    }
    tr_status status = write_facts(run, plan, &own, &mine);
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK) {
        status = share(run->comm, own, &first, err);
    }
    if (status == TR_OK) {
        status = compare(own, first, true, &mine);
        if (status == TR_OK) {
            status = compare(first, own, false, &mine);
        }
        status = tr__agree(run->comm, status, &mine, err);
    }
    if (status == TR_OK) {
        status = agree_on_exchanges(run->comm, plan, err);
    }
    tr__free(first);
    free(own);
    return status;
}
