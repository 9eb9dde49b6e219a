#include "cli/waiting.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { FIRST = 2, EVERY = 5 }; // seconds

// Until the second of the wait, or its end; true: it is over.
static bool is_over_at(cli_waiting *w, const struct timespec *begun, int second) {
    struct timespec until = *begun;
    int problem = 0;
    until.tv_sec += second;
    while (!w->over && problem != ETIMEDOUT) {
        problem = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    }
    return w->over;
}

static void *tell(void *user) {
    cli_waiting *w = user;
    struct timespec begun;
    char line[128];
    clock_gettime(CLOCK_REALTIME, &begun);
    pthread_mutex_lock(&w->lock);
    for (int second = FIRST; !is_over_at(w, &begun, second); second += EVERY) {
        snprintf(line, sizeof line, "%s: %d s", w->what, second);
        w->say(NULL, TR_MESSAGE_NOTE, line);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// Signals are for the threads that were there before.
void cli_waiting_begin(cli_waiting *waiting, const char *what,
                       void (*say)(void *user, tr_message_level level,
                                   const char *line)) {
    sigset_t all, before;
    *waiting = (cli_waiting){.what = what, .say = say};
    pthread_mutex_init(&waiting->lock, NULL);
    pthread_cond_init(&waiting->ended, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    waiting->begun = pthread_create(&waiting->thread, NULL, tell, waiting) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cli_waiting_end(cli_waiting *waiting) {
    if (waiting->begun) {
        pthread_mutex_lock(&waiting->lock);
        waiting->over = true;
        pthread_cond_signal(&waiting->ended);
        pthread_mutex_unlock(&waiting->lock);
        pthread_join(waiting->thread, NULL);
    }
    pthread_cond_destroy(&waiting->ended);
    pthread_mutex_destroy(&waiting->lock);
}
