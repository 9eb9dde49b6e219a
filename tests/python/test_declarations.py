"""The reader of the headers: what it makes of forms of C, and what it refuses."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

TOOL = Path(os.environ["TRANCHE_SOURCE"]) / "tools/declarations.py"


class Reader(unittest.TestCase):
    def read(self, text: str) -> tuple[int, str, dict[str, Any]]:
        """Status, message and what the module has, of a header with this text."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tranche").mkdir()
            lead = "#include <stddef.h>\n#include <stdint.h>\n#include <stdbool.h>\n"
            (Path(folder) / "tranche.h").write_text(lead + text)
            module = Path(folder) / "made.py"
            words = [sys.executable, TOOL, "--include", folder, "--python", module]
            done = subprocess.run(words, capture_output=True, text=True)
            made: dict[str, Any] = {}
            if module.exists():
                exec(module.read_text(), made)
            return done.returncode, done.stderr, made

    def test_forms(self) -> None:
        status, said, made = self.read(
            "#define TR_FIVE (2 + 3) // five\n"
            "#define TR_NONE_OF ((int64_t)-1)\n"
            "#define TR_LIST(X) X(A) X(B)\n"
            "enum { TR_MANY = 3, TR_MORE, TR_MOST = TR_MORE + TR_MANY };\n"
            "typedef struct tr_hidden tr_hidden;\n"
            "struct tr_other;\n"
            "typedef struct tr_a { char name[TR_MANY][4]; const char *text;\n"
            "    double x, y; } tr_a;\n"
            "typedef struct tr_b { tr_a a; struct tr_b *next; tr_hidden *h;\n"
            "    bool (*ask)(void *user, const char *text, size_t n); } tr_b;\n"
            "tr_a tr_make(const tr_b *from, int n, struct tr_other *o,\n"
            "             const int64_t k[4], void *const *rows);\n"
            "const char *tr_say(void);\n"
        )
        self.assertEqual((status, said), (0, ""))
        names = ("TR_FIVE", "TR_NONE_OF", "TR_MORE", "TR_MOST")
        self.assertEqual([made[name] for name in names], [5, -1, 4, 7])
        a, b = made["tr_a"], made["tr_b"]
        self.assertEqual(ctypes.sizeof(a), 16 + 8 + 16)
        ask = dict(b._fields_)["ask"]
        self.assertEqual(
            (ask._restype_, ask._argtypes_[1]), (ctypes.c_bool, ctypes.c_void_p)
        )
        result, parameters = made["FUNCTIONS"]["tr_make"]
        self.assertIs(result, a)
        of_rows = ctypes.POINTER(ctypes.c_void_p)
        of_k = ctypes.POINTER(ctypes.c_int64)
        wanted = [ctypes.POINTER(b), ctypes.c_int, ctypes.c_void_p, of_k, of_rows]
        self.assertEqual(parameters, wanted)
        self.assertEqual(made["FUNCTIONS"]["tr_say"], (ctypes.c_char_p, []))

    def test_what_it_does_not_know_is_an_error_with_its_place(self) -> None:
        for text, word in (
            ("typedef union tr_u { int a; float b; } tr_u;", "union"),
            ("typedef struct tr_s { int a : 3; } tr_s;", ":"),
            ("void tr_f(tr_nowhere x);", "tr_nowhere"),
            ("struct tr_late; void tr_f(struct tr_late x);", "an unknown struct"),
            ("typedef struct tr_s { int a[TR_NOWHERE]; } tr_s;", "TR_NOWHERE"),
            ("#error of mine", "of mine"),
        ):
            status, said, made = self.read(text)
            self.assertEqual((status, made), (1, {}), text)
            self.assertIn(word, said)


if __name__ == "__main__":
    unittest.main()
