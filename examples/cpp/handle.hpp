// What the examples in C++ share: objects that end with their scope, and errors that
// are thrown.
#ifndef HANDLE_HPP
#define HANDLE_HPP

#include <tranche.h>

#include <memory>
#include <stdexcept>

struct failure : std::runtime_error {
    explicit failure(const tr_error &err)
        : std::runtime_error(err.message), status(err.status) {
    }
    tr_status status;
};

template <typename T> using handle = std::unique_ptr<T, void (*)(T *)>;

// Calls a function of the library that gives an object: make(tr_run_destroy,
// tr_run_create) or, with what comes before the place for it, make(tr_plan_destroy,
// tr_run_make_plan, run).
template <typename T, typename Function, typename... Arguments>
handle<T> make(void (*destroy)(T *), Function function, Arguments... arguments) {
    tr_error err = tr_error();
    T *made = nullptr;
    if (function(arguments..., &made, &err) != TR_OK) {
        throw failure(err);
    }
    return handle<T>(made, destroy);
}

// Calls any other function: call(tr_run_set, run, "resume", "never").
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
    tr_error err = tr_error();
    if (function(arguments..., &err) != TR_OK) {
        throw failure(err);
    }
}

#endif
