#include "base/machine.h"

#include "base/checked.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

// A file with one number in it; INT64_MAX: none there, or "max".
static int64_t read_limit(const char *path) {
    long long limit = 0;
    FILE *file = fopen(path, "re");
    bool found = file && fscanf(file, "%lld", &limit) == 1 && limit > 0;
    if (file) {
        fclose(file);
    }
    return found ? limit : INT64_MAX;
}

// The lowest limit of the group and of those that it is in. `group`: "/a/b", is used
// up. A group may stand at the root of what a container sees, under its name outside.
static int64_t group_limit(const char *root, char *group, const char *file) {
    char path[PATH_MAX];
    int64_t least = INT64_MAX;
    for (;;) {
        int length = snprintf(path, sizeof path, "%s%s/%s", root, group, file);
        if (length > 0 && (size_t)length < sizeof path) {
            int64_t limit = read_limit(path);
            least = limit < least ? limit : least;
        }
        char *slash = strrchr(group, '/');
        if (!slash) {
            return least;
        }
        *slash = '\0';
    }
}

static int64_t groups_limit(void) {
    char line[PATH_MAX];
    int64_t least = INT64_MAX;
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups && fgets(line, sizeof line, groups)) {
        line[strcspn(line, "\n")] = '\0';
        // "0::/path" is version 2's, "4:memory:/path" version 1's.
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        int64_t limit = INT64_MAX;
        if (group && group == names + 1) {
            limit = group_limit("/sys/fs/cgroup", group + 1, "memory.max");
        } else if (group && strncmp(names, ":memory:", 8) == 0) {
            limit = group_limit("/sys/fs/cgroup/memory", group + 1,
                                "memory.limit_in_bytes");
        }
        least = limit < least ? limit : least;
    }
    if (groups) {
        fclose(groups);
    }
    return least;
}

int64_t tr__machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    int64_t all = pages > 0 && size > 0 ? (int64_t)pages * size : INT64_MAX;
    int64_t limit = groups_limit();
    int64_t least = limit < all ? limit : all;
    return least == INT64_MAX ? 0 : least;
}

int64_t tr__disk_free(const char *folder) {
    struct statvfs info;
    size_t bytes = 0;
    bool known = statvfs(folder, &info) == 0 && info.f_frsize > 0 &&
                 tr__mul_size(info.f_bavail, info.f_frsize, &bytes);
    return known && bytes <= INT64_MAX ? (int64_t)bytes : -1;
}

int64_t tr__process_peak(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}
