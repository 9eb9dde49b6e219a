// A machine as a file.
#include "base/text.h"
#include "sim/machine.h"

#include <inttypes.h>

static void print_object(const char *name, bool *first, FILE *to) {
    fprintf(to, "%s\n        \"%s\": ", *first ? "" : ",", name);
    *first = false;
}

static void print_ops(const tr_machine *m, const char *name, const double *values,
                      double least, FILE *to) {
    bool first = true;
    fprintf(to, ",\n        \"%s\": {", name);
    for (int i = 0; i < TR_RATED_OPS; i++) {
        if (m->op_flops[i] > 0 && values[i] >= least) {
            fprintf(to, "%s\n            \"%s\": %.4g", first ? "" : ",",
                    tr__rated_op_name((tr_rated_op)i), values[i]);
            first = false;
        }
    }
    fprintf(to, "}");
}

static void print_compute(const tr_machine *m, FILE *to) {
    fprintf(
        to,
        "    \"compute\": {\n        \"flops\": %.4g, \"half\": %.4g, \"bytes\": %.4g, "
        "\"launch\": %.3g, \"shared\": %s",
        m->flops, m->half_flops, m->memory_rate, m->launch,
        m->shared ? "true" : "false");
    if (m->cache_bytes > 0) {
        fprintf(to, ",\n        \"cache\": {\"size\": %.0f, \"bytes\": %.4g}",
                m->cache_bytes, m->cache_rate);
    }
    print_ops(m, "ops", m->op_flops, 1, to);
    print_ops(m, "launches", m->op_launch, 0, to);
    fprintf(to, "}");
}

// Two ways of one group, with what they take from computing.
static void print_ways(const tr_machine *m, const char *group, double interference,
                       tr_way first_way, const char *const names[2], FILE *to) {
    bool first = true;
    if (m->way[first_way].rate == 0 && m->way[first_way + 1].rate == 0) {
        return;
    }
    fprintf(to, ",\n    \"%s\": {", group);
    print_object("interference", &first, to);
    fprintf(to, "%.2f", interference);
    for (int i = 0; i < 2; i++) {
        if (m->way[first_way + i].rate > 0) {
            print_object(names[i], &first, to);
            fprintf(to, "{\"bytes\": %.4g, \"latency\": %.3g}",
                    m->way[first_way + i].rate, m->way[first_way + i].latency);
        }
    }
    if (first_way == TR_WAY_INSIDE) {
        print_object("exchange", &first, to);
        fprintf(to, "\"%s\"",
                m->exchange == TR_EXCHANGE_DIRECT ? "direct" : "hierarchical");
    }
    fprintf(to, "}");
}

static void print_memory(const tr_machine *m, FILE *to) {
    const char *comma = "";
    fprintf(to, ",\n    \"memory\": {");
    for (int s = 0; s < TR_SPACES; s++) {
        if (m->capacity[s] > 0) {
            fprintf(to, "%s\"%s\": %" PRId64, comma, tr_space_name((tr_space)s),
                    m->capacity[s]);
            comma = ", ";
        }
    }
    fprintf(to, "}");
}

static void print_text(const char *text, FILE *to) {
    fputc('"', to);
    tr__print_escaped(text, to);
    fputc('"', to);
}

tr_status tr__machine_print(const tr_machine *m, const char *const *sources,
                            size_t count, FILE *to, tr_error *err) {
    static const char *const links[2] = {"inside", "between"};
    static const char *const copies[2] = {"to_device", "to_host"};
    static const char *const files[2] = {"read", "write"};
    fprintf(to, "{\n    \"name\": ");
    print_text(m->name, to);
    for (size_t i = 0; i < count; i++) {
        fprintf(to, i == 0 ? ",\n    \"sources\": [" : ", ");
        print_text(sources[i], to);
    }
    fprintf(to, count > 0 ? "],\n" : ",\n");
    if (m->fingerprint) {
        fprintf(to, "    \"fingerprint\": ");
        print_text(m->fingerprint, to);
        fprintf(to, ",\n");
    }
    fprintf(to, "    \"ranks_per_node\": %" PRId64 ",\n", m->ranks_per_node);
    print_compute(m, to);
    if (m->host_rate > 0) {
        fprintf(to, ",\n    \"host\": {\"bytes\": %.4g}", m->host_rate);
    }
    print_ways(m, "link", m->link_interference, TR_WAY_INSIDE, links, to);
    print_ways(m, "copy", m->copy_interference, TR_WAY_TO_DEVICE, copies, to);
    print_ways(m, "nvme", m->nvme_interference, TR_WAY_NVME_READ, files, to);
    print_memory(m, to);
    fprintf(to, "\n}\n");
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write a machine file") : TR_OK;
}
