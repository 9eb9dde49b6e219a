// What tranche doctor finds: each line says what is there, what that means, and, where
// something can be mended, the command that does.
#ifndef TR_CLI_DOCTOR_FINDINGS_H
#define TR_CLI_DOCTOR_FINDINGS_H

#include <tranche/run.h>

#include <jansson.h>

#include <stdbool.h>

typedef enum cli_health {
    CLI_HEALTHY,
    CLI_NOTE, // it trains, but slower or with less than it could
    CLI_SICK, // training fails
    CLI_HEALTHS
} cli_health;

typedef struct cli_finding {
    cli_health health;
    const char *name;    // "open files"
    const char *value;   // "1024"
    const char *meaning; // a sentence
    const char *mend;    // a command, or what to set; NULL: there is nothing to mend
} cli_finding;

typedef struct cli_findings {
    bool json;
    json_t *list;     // where json; NULL: there was no memory for it
    const char *area; // of the finding before
    int count[CLI_HEALTHS];
} cli_findings;

// Prints it, or adds it to the list.
void cli_findings_add(cli_findings *to, const char *area, const cli_finding *finding);

// ---- doctor_parts.c
// A small run on a device, not yet resolved. The caller destroys *out, also after an
// error.
tr_status cli_doctor_run(const char *device, tr_run **out, tr_error *err);

// ---- doctor_machine.c: processor, threads, limits, memory
void cli_doctor_processor(cli_findings *to);
void cli_doctor_threads(cli_findings *to);
void cli_doctor_limits(cli_findings *to);
void cli_doctor_memory(cli_findings *to);
// ---- doctor_disk.c: the disk of the current folder, and the caches
int64_t cli_doctor_room(const char *folder); // free bytes; -1: not known
void cli_doctor_disk(cli_findings *to);
void cli_doctor_caches(cli_findings *to);
// ---- doctor_parts.c: ranks, GPU, libraries
void cli_doctor_ranks(cli_findings *to);
void cli_doctor_gpu(cli_findings *to);
void cli_doctor_libraries(cli_findings *to);

#endif
