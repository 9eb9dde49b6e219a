// The live line is drawn with blanks and carriage returns alone, without escape codes.
#include "report/screen.h"

#include "report/terminal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80 }; // of a terminal that does not say

// That a line may have: one of all columns would leave the cursor at the next one.
static int columns(void *user) {
    const report_screen *s = user;
    struct winsize size;
    bool said = ioctl(fileno(s->to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (said ? size.ws_col : COLUMNS) - 1;
}

// The terminal has become narrower than what stands there. Some terminals have broken
// it into several lines, others have cut it: it stays, and the next line is below.
static void leave_behind(report_screen *s) {
    if (s->drawn > columns(s)) {
        fputc('\n', s->to);
        s->drawn = 0;
    }
}

static void take_away(report_screen *s) {
    leave_behind(s);
    if (s->drawn > 0) {
        fprintf(s->to, "\r%*s\r", s->drawn, "");
        s->drawn = 0;
    }
}

static void show_line(void *user, const char *text) {
    report_screen *s = user;
    take_away(s);
    report_print_line(s->to, "", text);
    fflush(s->to);
}

static void draw(report_screen *s, const char *text) {
    int length = (int)strlen(text);
    leave_behind(s);
    fprintf(s->to, "\r%s", text);
    if (length < s->drawn) {
        fprintf(s->to, "%*s\r%s", s->drawn - length, "", text);
    }
    s->drawn = length;
}

static void show_live(void *user, const char *text) {
    report_screen *s = user;
    if (!text && s->drawn > 0) { // it stays
        fputc('\n', s->to);
        s->drawn = 0;
    } else if (text && text[0]) {
        draw(s, text);
    } else {
        take_away(s);
    }
    fflush(s->to);
}

tr_screen report_screen_on(report_screen *screen, FILE *to, bool live) {
    bool terminal = live && report_is_terminal(to);
    *screen = (report_screen){.to = to};
    return (tr_screen){.line = show_line,
                       .live = terminal ? show_live : NULL,
                       .columns = terminal ? columns : NULL,
                       .user = screen};
}
