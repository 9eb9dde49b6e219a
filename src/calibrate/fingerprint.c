// What figures hold for, in words.
#include "backend/backend.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "calibrate/measure.h"

#include <tranche/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum { LINE = 256 };

// As Linux names the processor; elsewhere, what kind it is.
static void processor(char name[LINE]) {
    struct utsname system;
    char line[LINE];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, LINE, "%s", uname(&system) == 0 ? system.machine : "processor");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (value && strncmp(line, "model name", 10) == 0) {
            value[strcspn(value, "\n")] = '\0';
            snprintf(name, LINE, "%s", value + 1 + (value[1] == ' '));
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

static uint64_t hash_tensors(uint64_t hash, const tr_tensor_desc *descs, int count) {
    for (int i = 0; i < count; i++) {
        int64_t rank = descs[i].shape.rank, type = (int64_t)descs[i].dtype;
        hash = tr__hash_more(hash, &type, sizeof type);
        hash = tr__hash_more(hash, &rank, sizeof rank);
        hash = tr__hash_more(hash, descs[i].shape.dim, (size_t)rank * sizeof(int64_t));
    }
    return hash;
}

static uint64_t hash_program(uint64_t hash, const tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        hash = tr__hash_more(hash, at->kernel->name, strlen(at->kernel->name));
        hash = tr__hash_more(hash, at->desc.attr, at->desc.op->attr_bytes);
        hash = hash_tensors(hash, at->desc.in, at->desc.in_count);
        hash = hash_tensors(hash, at->desc.out, at->desc.out_count);
    }
    return hash;
}

static uint64_t hash_segment(uint64_t hash, const tr_unit_program *unit,
                             tr_variant role, int segment) {
    tr_piece_range pieces = tr__segment_pieces(unit, role, segment);
    for (int i = pieces.first; i < pieces.end; i++) {
        hash = hash_program(hash, tr__unit_piece(unit, role, i));
    }
    return hash;
}

// The kernels that are measured, with their shapes.
static uint64_t hash_kernels(const tr_measuring *m) {
    uint64_t hash = 0;
    for (int p = 0; p < m->plan_count; p++) {
        for (int u = 0; u < m->plans[p]->unit_count; u++) {
            const tr_plan_unit *unit = &m->plans[p]->units[u];
            int segments = unit->owns_program ? unit->program->segments : 0;
            for (int s = 0; s < segments; s++) {
                hash = hash_segment(hash, unit->program, TR_VARIANT_FORWARD, s);
                hash = hash_segment(hash, unit->program, TR_VARIANT_BACKWARD, s);
            }
        }
    }
    return hash;
}

// The device that a folder is on, or would be.
static unsigned long long device_of(const char *folder) {
    struct stat about;
    char path[4096];
    int length = snprintf(path, sizeof path, "%s", folder);
    while (length > 0 && stat(path, &about) != 0) {
        char *last = strrchr(path, '/');
        if (!last) {
            return stat(".", &about) == 0 ? (unsigned long long)about.st_dev : 0;
        }
        *last = '\0';
        length = (int)strlen(path);
    }
    return length > 0 || stat("/", &about) == 0 ? (unsigned long long)about.st_dev : 0;
}

// ", NVIDIA H200 of 150754820096 bytes"; of the machine itself nothing.
static void name_device(const tr_measuring *m, char name[2 * LINE]) {
    tr_device device;
    name[0] = '\0';
    if (tr__backend_has(m->backend, m->request->device, &device)) {
        snprintf(name, 2 * LINE, ", %s of %lld bytes", device.name,
                 (long long)device.memory);
    }
}

tr_status tr__calibration_fingerprint(const tr_measuring *m, const char *nvme,
                                      char **out, tr_error *err) {
    char chip[LINE], device[2 * LINE], disk[LINE] = "";
    const tr_plan_request *r = m->request;
    processor(chip);
    name_device(m, device);
    if (nvme && *nvme) {
        snprintf(disk, sizeof disk, ", nvme on device %llx", device_of(nvme));
    }
    *out = tr__format("tranche %s; %s, %s%s%s, %d processors, %d threads, %lld bytes; "
                      "%d of %lld ranks, %lld on a node; kernels %016llx%s",
                      TRANCHE_VERSION, chip, tr__target_name(&m->plans[0]->target),
                      r->reference_kernels ? " (plain kernels)" : "", device,
                      tr__parallel_processors(), r->threads,
                      (long long)tr__machine_memory(), tr__comm_count(m->comm),
                      (long long)tr_mesh_ranks(&r->mesh),
                      (long long)m->machine->ranks_per_node,
                      (unsigned long long)hash_kernels(m), disk);
    return *out ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to calibrate");
}
