#include "base/cores.h"

#include "base/clock.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

// A line of /proc/stat: "cpu3 user nice system idle iowait irq softirq steal ...". What
// the host of a virtual machine takes (steal) is lost to this process, too.
static int ticks_of_line(const char *line, double *ticks) {
    int core = -1;
    double t[8] = {0};
    if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &core, &t[0], &t[1],
               &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 5) {
        return -1;
    }
    *ticks = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    return core;
}

int tr__core_ticks(FILE *stat, const unsigned char *counted, int core_count,
                   double *ticks) {
    char line[LINE_BYTES];
    int cores = 0;
    *ticks = 0;
    while (fgets(line, sizeof line, stat)) {
        double more = 0;
        int core = ticks_of_line(line, &more);
        if (core >= 0 && core < core_count && counted[core]) {
            *ticks += more;
            cores++;
        }
        if (strncmp(line, "intr", 4) == 0) {
            break; // a long line; no core comes after it
        }
    }
    return cores;
}

static double own_seconds(void) {
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0) {
        return 0;
    }
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

tr_core_times tr__core_times(void) {
    unsigned char counted[CPU_SETSIZE];
    tr_core_times times = {.clock = tr__seconds(), .own = own_seconds()};
    double ticks = 0;
    long rate = sysconf(_SC_CLK_TCK);
    cpu_set_t set;
    if (rate <= 0 || sched_getaffinity(0, sizeof set, &set) != 0) {
        return times;
    }
    for (int core = 0; core < CPU_SETSIZE; core++) {
        counted[core] = CPU_ISSET(core, &set) != 0;
    }
    FILE *stat = fopen("/proc/stat", "re");
    if (!stat) {
        return times;
    }
    times.cores = tr__core_ticks(stat, counted, CPU_SETSIZE, &ticks);
    times.busy = ticks / (double)rate;
    fclose(stat);
    return times;
}

double tr__cores_of_others(const tr_core_times *before, const tr_core_times *after) {
    double seconds = after->clock - before->clock;
    double others = (after->busy - before->busy) - (after->own - before->own);
    return seconds > 0 && others > 0 ? others / seconds : 0;
}

void tr__cores_mask(uint64_t *mask, size_t bytes) {
    // A mask of the kernel is an array of words, whatever cpu_set_t's own size.
    sched_getaffinity(0, bytes, (cpu_set_t *)(void *)mask);
}
