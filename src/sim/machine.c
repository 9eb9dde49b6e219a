#include "sim/machine.h"

#include "backend/backend.h"
#include "base/arguments.h"
#include "base/memory.h"
#include "config/config.h"
#include "plan/flow/algorithm.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    KEYS_MAX = 32 + 2 * TR_RATED_OPS + 2 * TR_WAYS + TR_REACHED_KEYS_MAX,
    PATH_BYTES = TR_REACHED_PATH
};

static const char *const op_names[TR_RATED_OPS] = {
#define TR_RATED_OP_NAME(name) #name,
    TR_RATED_OP_LIST(TR_RATED_OP_NAME)
#undef TR_RATED_OP_NAME
};

static const char *const exchanges[] = {"auto", TR_EXCHANGE_NAMES, "nccl", NULL};

#define PER_SECOND .types = TR_KEY_NUMBER | TR_KEY_SIZE, .min = 1, .max = 1e30
#define SECONDS    .types = TR_KEY_NUMBER, .min = 0, .max = 3600, .fallback = "0"
#define PART                                                                           \
    .types = TR_KEY_NUMBER, .min = 0, .max = TR_INTERFERENCE_MOST, .fallback = "0"
#define CAPACITY .types = TR_KEY_SIZE

// Keys without a default must be given, but for capacities, ways and rates of ops.
static const tr_key fixed_keys[] = {
    {.path = "name", .types = TR_KEY_TEXT, .doc = "what machine this is"},
    {.path = "sources",
     .types = TR_KEY_LIST,
     .elements = TR_KEY_TEXT,
     .doc = "where the figures are from"},
    {.path = "fingerprint",
     .types = TR_KEY_TEXT,
     .doc = "what a calibration measured: it holds as long as this stays"},
    {.path = "ranks_per_node",
     .types = TR_KEY_INT,
     .min = 1,
     .max = 1 << 20,
     .doc = "ranks on one node"},
    {.path = "target.backend",
     .types = TR_KEY_TEXT,
     .choices = tr__backend_names,
     .doc = "whose kernels compute"},
    {.path = "target.level", .types = TR_KEY_TEXT, .doc = "the best kernels to use"},
    {.path = "target.workers",
     .types = TR_KEY_INT,
     .min = 1,
     .max = 1 << 16,
     .doc = "of a rank: threads"},
    {.path = "compute.flops", PER_SECOND, .doc = "matrix products, operations/s"},
    {.path = "compute.half", PER_SECOND, .doc = "the same in bf16 or f16"},
    {.path = "compute.fp8", PER_SECOND, .doc = "the same of operands of 8 bits"},
    {.path = "compute.bytes", PER_SECOND, .doc = "memory, bytes read and written/s"},
    {.path = "compute.power",
     .types = TR_KEY_NUMBER,
     .min = 1,
     .max = 1e6,
     .doc = "watts that a rank may draw"},
    {.path = "compute.launch", SECONDS, .doc = "seconds that each kernel takes more"},
    {.path = "compute.shared",
     .types = TR_KEY_BOOL,
     .fallback = "false",
     .doc = "the ranks of a node share these rates and memory.device"},
    {.path = "compute.cache.size", CAPACITY, .doc = "the cache between, bytes"},
    {.path = "compute.cache.bytes", PER_SECOND, .doc = "its rate, bytes/s"},
    {.path = "memory.device", CAPACITY, .doc = "bytes of a rank"},
    {.path = "memory.host", CAPACITY, .doc = "bytes of a node"},
    {.path = "memory.nvme", CAPACITY, .doc = "bytes of a node"},
    {.path = "link.exchange",
     .types = TR_KEY_TEXT,
     .choices = exchanges,
     .fallback = "\"auto\"",
     .doc = "how ranks exchange"},
    {.path = "link.between.shared",
     .types = TR_KEY_BOOL,
     .fallback = "false",
     .doc = "one rank of a node that sends alone gets the rate of all"},
    {.path = "host.bytes", PER_SECOND, .doc = "a node's host memory, bytes/s"},
    {.path = "host.is_device",
     .types = TR_KEY_BOOL,
     .doc = "its processors are the device"},
    {.path = "link.interference",
     PART,
     .doc = "what computing and messages take from each other"},
    {.path = "copy.interference",
     PART,
     .doc = "what computing and copies take from each other"},
    {.path = "nvme.interference",
     PART,
     .doc = "what computing and NVMe take from each other"},
};

typedef struct key_list {
    tr_key keys[KEYS_MAX];
    char paths[KEYS_MAX][PATH_BYTES]; // of those that are made here
    size_t count;
} key_list;

static void add_key(key_list *list, const char *group, const char *name, tr_key key) {
    char *path = list->paths[list->count];
    snprintf(path, PATH_BYTES, "%s.%s", group, name);
    key.path = path;
    list->keys[list->count++] = key;
}

static void fill_keys(key_list *list) {
    list->count = sizeof fixed_keys / sizeof *fixed_keys;
    memcpy(list->keys, fixed_keys, sizeof fixed_keys);
    for (int i = 0; i < TR_RATED_OPS; i++) {
        add_key(list, "compute.ops", op_names[i],
                (tr_key){PER_SECOND, .doc = "this op, operations/s"});
        add_key(list, "compute.launches", op_names[i],
                (tr_key){.types = TR_KEY_NUMBER,
                         .max = 3600,
                         .doc = "seconds that this op takes besides"});
    }
    for (int i = 0; i < TR_WAYS; i++) {
        add_key(list, tr__way_key((tr_way)i), "bytes",
                (tr_key){PER_SECOND, .doc = "bytes/s"});
        add_key(list, tr__way_key((tr_way)i), "latency",
                (tr_key){SECONDS, .doc = "seconds of each message"});
    }
    list->count += tr__reached_keys(&list->keys[list->count], &list->paths[list->count],
                                    offsetof(tr_machine, reached));
}

// ---- reading

static bool is_there(const tr_config *config, const char *group, const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%s", group, name);
    return tr__config_is_set(config, path);
}

static double number_at(const tr_config *config, const char *group, const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%s", group, name);
    return tr__config_number(config, path);
}

static double rate_or(const tr_config *config, const char *path, double fallback) {
    return tr__config_is_set(config, path) ? tr__config_number(config, path) : fallback;
}

static void read_rates(const tr_config *config, tr_machine *m) {
    m->flops = tr__config_number(config, "compute.flops");
    m->half_flops = rate_or(config, "compute.half", m->flops);
    m->fp8_flops = rate_or(config, "compute.fp8", m->half_flops);
    m->memory_rate = tr__config_number(config, "compute.bytes");
    m->cache_bytes = (double)tr__config_size(config, "compute.cache.size");
    m->cache_rate = tr__config_number(config, "compute.cache.bytes");
    m->host_rate = tr__config_number(config, "host.bytes");
    m->launch = tr__config_number(config, "compute.launch");
    m->power = tr__config_number(config, "compute.power");
    tr__config_read_fields(config, m);
    m->shared = tr__config_bool(config, "compute.shared");
    for (int i = 0; i < TR_RATED_OPS; i++) {
        m->op_flops[i] = number_at(config, "compute.ops", op_names[i]);
        m->op_launch[i] = is_there(config, "compute.launches", op_names[i])
                              ? number_at(config, "compute.launches", op_names[i])
                              : -1;
    }
    for (int i = 0; i < TR_WAYS; i++) {
        m->way[i].rate = number_at(config, tr__way_key((tr_way)i), "bytes");
        m->way[i].latency = number_at(config, tr__way_key((tr_way)i), "latency");
    }
}

static tr_exchange_method exchange_of(const char *name) {
    int method = 0;
    while (strcmp(exchanges[method], name) != 0) {
        method++;
    }
    return (tr_exchange_method)method;
}

static tr_status read_rest(const tr_config *config, tr_machine *m, tr_error *err) {
    m->ranks_per_node = tr__config_int(config, "ranks_per_node");
    m->capacity[TR_SPACE_DEVICE] = tr__config_size(config, "memory.device");
    m->capacity[TR_SPACE_HOST] = tr__config_size(config, "memory.host");
    m->capacity[TR_SPACE_NVME] = tr__config_size(config, "memory.nvme");
    m->link_interference = tr__config_number(config, "link.interference");
    m->copy_interference = tr__config_number(config, "copy.interference");
    m->nvme_interference = tr__config_number(config, "nvme.interference");
    m->exchange = exchange_of(tr__config_text(config, "link.exchange"));
    m->shared_between = tr__config_bool(config, "link.between.shared");
    bool known = tr__config_is_set(config, "fingerprint");
    m->host_is_device = tr__config_is_set(config, "host.is_device")
                            ? tr__config_bool(config, "host.is_device")
                            : m->shared || known; // calibrations are of CPUs
    m->name = tr__strdup(tr__config_text(config, "name"));
    m->fingerprint = known ? tr__strdup(tr__config_text(config, "fingerprint")) : NULL;
    return m->name && (m->fingerprint || !known)
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for a machine");
}

static tr_status read_target(const tr_config *config, const char *path, tr_machine *m,
                             tr_error *err) {
    const char *backend_name = tr__config_text(config, "target.backend");
    m->backend = backend_name ? tr__backend_find(backend_name) : TR_BACKEND_HOST;
    m->workers = (int)tr__config_int(config, "target.workers");
    m->says_backend = tr__config_is_set(config, "target.backend") ||
                      tr__config_is_set(config, "target.level");
    if (!tr__config_is_set(config, "target.level")) {
        return TR_OK;
    }
    const tr_backend *backend = tr__backend(m->backend);
    const char *asked = tr__config_text(config, "target.level"), *known;
    while ((known = backend->level_name(m->level_limit++)) != NULL) {
        if (strcmp(known, asked) == 0) {
            return TR_OK;
        }
    }
    return tr_fail(
        err, TR_USAGE,
        "%.300s: target.level is \"%.60s\"; those of \"%s\" go from \"%s\" to "
        "\"%s\"",
        path, asked, backend->name, backend->level_name(0),
        backend->level_name(m->level_limit - 2));
}

static tr_status check_there(const tr_config *config, const char *path, tr_error *err) {
    static const char *const needed[] = {"name", "ranks_per_node", "compute.flops",
                                         "compute.bytes"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!tr__config_is_set(config, needed[i])) {
            return tr_fail(err, TR_USAGE, "%.300s: %s is missing", path, needed[i]);
        }
    }
    bool size = tr__config_is_set(config, "compute.cache.size");
    if (size != tr__config_is_set(config, "compute.cache.bytes")) {
        return tr_fail(err, TR_USAGE, "%.300s: compute.cache needs both size and bytes",
                       path);
    }
    return TR_OK;
}

// `text`: NULL: that of the file `name`.
static tr_status read_machine(const char *name, const char *text, tr_machine **out,
                              tr_error *err) {
    tr_config *config = NULL;
    tr_machine *machine = tr__calloc(1, sizeof *machine);
    key_list *list = tr__calloc(1, sizeof *list);
    tr_status status = TR_OK;
    if (!machine || !list) {
        status = tr_fail(err, TR_MEMORY, "no memory for a machine");
        goto cleanup;
    }
    fill_keys(list);
    const tr_key_table table = {.keys = list->keys, .count = list->count};
    const tr_key_table *const tables[] = {&table};
    status = text ? tr__config_parse(&(tr_config_text){name, text, strlen(text)},
                                     tables, 1, NULL, 0, &config, err)
                  : tr__config_open(name, tables, 1, NULL, 0, &config, err);
    if (status == TR_OK) {
        status = check_there(config, name, err);
    }
    if (status == TR_OK) {
        read_rates(config, machine);
        status = read_target(config, name, machine, err);
    }
    if (status == TR_OK) {
        status = read_rest(config, machine, err);
    }
cleanup:
    tr__config_destroy(config);
    tr__free(list);
    if (status != TR_OK) {
        tr_machine_close(machine);
        return status;
    }
    *out = machine;
    return TR_OK;
}

tr_status tr_machine_open(const char *path, tr_machine **out, tr_error *err) {
    static const char own_name[] = "tr_machine_open";
    tr_status given = tr__need(path, own_name, "path", err);
    given = given == TR_OK ? tr__need(out, own_name, "out", err) : given;
    if (given != TR_OK) {
        return given;
    }
    return read_machine(path, NULL, out, err);
}

tr_status tr__machine_parse(const char *name, const char *text, tr_machine **out,
                            tr_error *err) {
    return read_machine(name, text, out, err);
}

void tr_machine_close(tr_machine *machine) {
    if (machine) {
        tr__free(machine->name);
        tr__free(machine->fingerprint);
        tr__free(machine);
    }
}

// ---- names

double tr__machine_flops(const tr_machine *machine, tr_dtype compute) {
    return compute == TR_BF16 || compute == TR_F16 ? machine->half_flops
                                                   : machine->flops;
}

const char *tr__rated_op_name(tr_rated_op op) {
    return op_names[op];
}

const char *tr__exchange_name(tr_exchange_method method) {
    return exchanges[method];
}

tr_rated_op tr__rated_op_find(const char *name) {
    int i = 0;
    while (i < TR_RATED_OPS && strcmp(op_names[i], name) != 0) {
        i++;
    }
    return (tr_rated_op)i;
}
