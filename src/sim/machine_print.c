// A machine as a file.
#include "backend/backend.h"
#include "base/json_writer.h"
#include "base/sink.h"
#include "sim/machine.h"

#include <math.h>

static void write_ops(const tr_machine *m, const char *name, const double *values,
                      double least, tr_json_writer *to) {
    tr__json_line(to, 8);
    tr__json_put_open(to, name, '{');
    for (int i = 0; i < TR_RATED_OPS; i++) {
        if (m->op_flops[i] > 0 && values[i] >= least) {
            tr__json_line(to, 12);
            tr__json_put_digits(to, tr__rated_op_name((tr_rated_op)i), values[i], 4);
        }
    }
    tr__json_close(to, '}');
}

// What the file said.
static void write_target(const tr_machine *m, tr_json_writer *to) {
    const tr_backend *backend = tr__backend(m->backend);
    if (m->level_limit == 0 && m->workers == 0) {
        return;
    }
    tr__json_line(to, 4);
    tr__json_put_open(to, "target", '{');
    tr__json_put_text(to, "backend", backend->name);
    if (m->level_limit > 0) {
        tr__json_put_text(to, "level", backend->level_name(m->level_limit - 1));
    }
    if (m->workers > 0) {
        tr__json_put_integer(to, "workers", m->workers);
    }
    tr__json_close(to, '}');
}

static void write_compute(const tr_machine *m, tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_put_open(to, "compute", '{');
    tr__json_line(to, 8);
    tr__json_put_digits(to, "flops", m->flops, 4);
    tr__json_put_digits(to, "half", m->half_flops, 4);
    tr__json_put_digits(to, "fp8", m->fp8_flops, 4);
    tr__json_put_digits(to, "bytes", m->memory_rate, 4);
    if (m->power > 0) {
        tr__json_put_digits(to, "power", m->power, 4);
    }
    tr__json_put_digits(to, "launch", m->launch, 3);
    tr__json_put_bool(to, "shared", m->shared);
    if (m->cache_bytes > 0) {
        tr__json_line(to, 8);
        tr__json_put_open(to, "cache", '{');
        tr__json_put_whole(to, "size", m->cache_bytes);
        tr__json_put_digits(to, "bytes", m->cache_rate, 4);
        tr__json_close(to, '}');
    }
    write_ops(m, "ops", m->op_flops, 1, to);
    write_ops(m, "launches", m->op_launch, 0, to);
    tr__json_close(to, '}');
}

// Two ways of one group, with what they take from computing.
static void write_ways(const tr_machine *m, const char *group, double interference,
                       tr_way first_way, const char *const names[2],
                       tr_json_writer *to) {
    if (m->way[first_way].rate == 0 && m->way[first_way + 1].rate == 0) {
        return;
    }
    tr__json_line(to, 4);
    tr__json_put_open(to, group, '{');
    tr__json_line(to, 8);
    tr__json_put_digits(to, "interference", rint(100 * interference) / 100, 9);
    for (int i = 0; i < 2; i++) {
        if (m->way[first_way + i].rate > 0) {
            tr__json_line(to, 8);
            tr__json_put_open(to, names[i], '{');
            tr__json_put_digits(to, "bytes", m->way[first_way + i].rate, 4);
            tr__json_put_digits(to, "latency", m->way[first_way + i].latency, 3);
            if (first_way + i == TR_WAY_BETWEEN && m->shared_between) {
                tr__json_put_bool(to, "shared", true);
            }
            tr__json_close(to, '}');
        }
    }
    if (first_way == TR_WAY_INSIDE) {
        tr__json_line(to, 8);
        tr__json_put_text(to, "exchange", tr__exchange_name(m->exchange));
    }
    tr__json_close(to, '}');
}

static void write_memory(const tr_machine *m, tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_put_open(to, "memory", '{');
    for (int s = 0; s < TR_SPACES; s++) {
        if (m->capacity[s] > 0) {
            tr__json_put_integer(to, tr_space_name((tr_space)s), m->capacity[s]);
        }
    }
    tr__json_close(to, '}');
}

static void write_head(const tr_machine *m, const char *const *sources, size_t count,
                       tr_json_writer *to) {
    tr__json_line(to, 4);
    tr__json_put_text(to, "name", m->name);
    if (count > 0) {
        tr__json_line(to, 4);
        tr__json_put_open(to, "sources", '[');
        for (size_t i = 0; i < count; i++) {
            tr__json_add_text(to, sources[i]);
        }
        tr__json_close(to, ']');
    }
    if (m->fingerprint) {
        tr__json_line(to, 4);
        tr__json_put_text(to, "fingerprint", m->fingerprint);
    }
    tr__json_line(to, 4);
    tr__json_put_integer(to, "ranks_per_node", m->ranks_per_node);
}

tr_status tr__machine_print(const tr_machine *m, const char *const *sources,
                            size_t count, FILE *to, tr_error *err) {
    static const char *const links[2] = {"inside", "between"};
    static const char *const copies[2] = {"to_device", "to_host"};
    static const char *const files[2] = {"read", "write"};
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    write_head(m, sources, count, &w);
    write_target(m, &w);
    write_compute(m, &w);
    if (m->host_rate > 0) {
        tr__json_line(&w, 4);
        tr__json_put_open(&w, "host", '{');
        tr__json_put_digits(&w, "bytes", m->host_rate, 4);
        tr__json_put_bool(&w, "is_device", m->host_is_device);
        tr__json_close(&w, '}');
    }
    write_ways(m, "link", m->link_interference, TR_WAY_INSIDE, links, &w);
    write_ways(m, "copy", m->copy_interference, TR_WAY_TO_DEVICE, copies, &w);
    write_ways(m, "nvme", m->nvme_interference, TR_WAY_NVME_READ, files, &w);
    write_memory(m, &w);
    tr__reached_print(&m->reached, &w);
    tr__json_line(&w, 0);
    tr__json_close(&w, '}');
    fputc('\n', to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write a machine file") : TR_OK;
}

// A file that was read says no more where its figures are from.
static tr_status print_file(const void *machine, FILE *to, tr_error *err) {
    static const char *const measured[] = {"measured here, with the model's kernels"};
    const tr_machine *m = machine;
    return tr__machine_print(m, measured, m->fingerprint ? 1 : 0, to, err);
}

tr_status tr_machine_print(const tr_machine *machine, const tr_sink *to,
                           tr_error *err) {
    return tr__sink_print(to, "tr_machine_print", print_file, machine, err);
}
