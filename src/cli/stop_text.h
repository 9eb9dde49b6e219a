// Text that is shown up to the first of some given texts.
#ifndef TR_CLI_STOP_TEXT_H
#define TR_CLI_STOP_TEXT_H

#include "cli/cli.h"
#include "report/terminal.h"

// What may be the beginning of a stop text waits until more of the text is known.
typedef struct cli_stop {
    const cli_list *texts; // none of them is empty
    char *held;            // what waits, [room]
    size_t count, room;
    bool found; // the text is over
} cli_stop;

// texts: borrowed. TR_USAGE: one is empty. TR_MEMORY.
tr_status cli_stop_open(cli_stop *stop, const cli_list *texts, tr_error *err);
void cli_stop_close(cli_stop *stop);
// The next byte of the text. After a stop text nothing is shown any more.
void cli_stop_put(cli_stop *stop, unsigned char byte, report_clean *to);
// The text is at its end: shows what waits.
void cli_stop_end(cli_stop *stop, report_clean *to);
// The bytes of a text before the first of the stop texts; `bytes` where it has none.
size_t cli_stop_before(const cli_stop *stop, const char *text, size_t bytes);

#endif
