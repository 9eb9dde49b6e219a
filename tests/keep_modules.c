// A library for LD_PRELOAD, beside AddressSanitizer and MPI. What the MPI libraries
// lose is known by the module that asked for it (lsan.supp). They unload their plug-ins
// before leaks are counted, and without frame pointers a stack that begins inside of
// the C library ends there. Whole stacks would tell all the same, but to walk one at
// each allocation takes up to ten times as long as the test itself. So plug-ins stay,
// and the C library's functions that allocate a text do it here, one call below who
// asks.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Some of these are in no header.
int dlclose(void *handle);
int __vasprintf_chk(char **text, int flag, const char *format, va_list args);
int __asprintf_chk(char **text, int flag, const char *format, ...);

int dlclose(void *handle) {
    (void)handle;
    return 0;
}

int vasprintf(char **text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    *text = length < 0 ? NULL : malloc((size_t)length + 1);
    length = *text ? vsnprintf(*text, (size_t)length + 1, format, again) : -1;
    va_end(again);
    return length;
}

int asprintf(char **text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vasprintf(text, format, args);
    va_end(args);
    return length;
}

// The same, as programs call them that are compiled with _FORTIFY_SOURCE.
int __vasprintf_chk(char **text, int flag, const char *format, va_list args) {
    (void)flag;
    return vasprintf(text, format, args);
}

int __asprintf_chk(char **text, int flag, const char *format, ...) {
    (void)flag;
    va_list args;
    va_start(args, format);
    int length = vasprintf(text, format, args);
    va_end(args);
    return length;
}
