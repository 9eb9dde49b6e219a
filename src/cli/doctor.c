#include "cli/cli.h"
#include "cli/doctor_findings.h"
#include "cli/json.h"
#include "report/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *const words[CLI_HEALTHS] = {"ok", "note", "bad"};

static void print_mark(cli_health health) {
    static const char *const colors[CLI_HEALTHS] = {REPORT_GREEN, REPORT_YELLOW,
                                                    REPORT_RED};
    bool colored = report_has_color(stdout);
    printf("  %s%-4s%s  ", colored ? colors[health] : "", words[health],
           colored ? REPORT_PLAIN : "");
}

static void print_finding(const cli_finding *f) {
    print_mark(f->health);
    printf("%s: ", f->name);
    report_print_name(stdout, f->value);
    printf("\n        %s\n", f->meaning);
    if (f->mend) {
        fputs("        mend: ", stdout);
        report_print_name(stdout, f->mend);
        putchar('\n');
    }
}

static void list_finding(cli_findings *to, const char *area, const cli_finding *f) {
    json_t *value = cli_json_path(f->value);
    json_t *one =
        value ? json_pack("{s:s, s:s, s:o, s:s, s:s, s:o}", "area", area, "name",
                          f->name, "value", value, "health", words[f->health],
                          "meaning", f->meaning, "mend", cli_json_text(f->mend))
              : NULL;
    if (!one || json_array_append_new(to->list, one) != 0) {
        json_decref(to->list);
        to->list = NULL;
    }
}

void cli_findings_add(cli_findings *to, const char *area, const cli_finding *finding) {
    to->count[finding->health]++;
    if (to->json) {
        list_finding(to, area, finding);
        return;
    }
    if (!to->area || strcmp(to->area, area) != 0) {
        printf("%s%s\n", to->area ? "\n" : "", area);
    }
    to->area = area;
    print_finding(finding);
    fflush(stdout); // the disk is measured for a while
}

static tr_status end(const cli_findings *found, tr_error *err) {
    const int *count = found->count;
    if (found->json) {
        json_t *all =
            found->list
                ? json_pack("{s:i, s:i, s:i, s:O}", words[CLI_HEALTHY],
                            count[CLI_HEALTHY], words[CLI_NOTE], count[CLI_NOTE],
                            words[CLI_SICK], count[CLI_SICK], "findings", found->list)
                : NULL;
        return cli_json_print(all, err);
    }
    printf("\n%d ok, %d to note, %d bad\n", count[CLI_HEALTHY], count[CLI_NOTE],
           count[CLI_SICK]);
    return TR_OK;
}

int cli_doctor(const cli_command *command, int argc, char **argv) {
    cli_findings found = {0};
    tr_error err = {0};
    int exit_status;
    const cli_option options[] = {
        {"--json", CLI_FLAG, &found.json, NULL, "prints a JSON object"},
    };
    cli_operands operands = {NULL, 0, 0, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    signal(SIGXFSZ, SIG_IGN); // a file over the size limit is what is to be found
    found.list = found.json ? json_array() : NULL;
    cli_doctor_processor(&found);
    cli_doctor_threads(&found);
    cli_doctor_limits(&found);
    cli_doctor_memory(&found);
    cli_doctor_disk(&found);
    cli_doctor_ranks(&found);
    cli_doctor_gpu(&found);
    cli_doctor_libraries(&found);
    cli_doctor_caches(&found);
    tr_status status = end(&found, &err);
    json_decref(found.list);
    if (status != TR_OK) {
        return cli_fail(&err);
    }
    exit_status = cli_end(TR_OK);
    return exit_status == 0 && found.count[CLI_SICK] > 0 ? 1 : exit_status;
}
