// Says that something is waited for, while a call is at work that says nothing itself.
#ifndef TR_CLI_WAITING_H
#define TR_CLI_WAITING_H

#include <tranche/run.h>

#include <pthread.h>
#include <stdbool.h>

typedef struct cli_waiting {
    const char *what; // "waiting for all ranks"
    void (*say)(void *user, tr_message_level level, const char *line);
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool begun, over;
} cli_waiting;

// From the second second on, now and then: "WHAT: 2 s". It must not be moved until its
// end. The second one ends it, for better or worse.
void cli_waiting_begin(cli_waiting *waiting, const char *what,
                       void (*say)(void *user, tr_message_level level,
                                   const char *line));
void cli_waiting_end(cli_waiting *waiting);

#endif
