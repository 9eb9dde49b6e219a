#!/usr/bin/env python3
"""Reads the stable public headers and writes what a binding needs to call them.

    declarations.py --cc CC --include DIR --python FILE --layout FILE

--python gets a module of ctypes: constants, structs and functions. --layout gets a C
program that prints every size, offset and constant as the compiler has them, for the
test that compares the two (tests/python/test_layout.py).

The headers are preprocessed by the compiler; what is left are declarations of a small
part of C: typedefs, enums, structs, functions and pointers to functions. Anything else
is an error that shows where.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SCALARS = {
    "char": "c_char",
    "int": "c_int",
    "unsigned": "c_uint",
    "float": "c_float",
    "double": "c_double",
    "_Bool": "c_bool",
    "size_t": "c_size_t",
    "int8_t": "c_int8",
    "uint8_t": "c_uint8",
    "int16_t": "c_int16",
    "uint16_t": "c_uint16",
    "int32_t": "c_int32",
    "uint32_t": "c_uint32",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
}
PYTHON_TYPES = {
    "c_char": "bytes",
    "c_bool": "bool",
    "c_float": "float",
    "c_double": "float",
}
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\.\.\.|[^\s\w]")
QUALIFIERS = {"const", "extern"}


class Unreadable(Exception):
    pass


@dataclass
class Type:
    """How ctypes names a type, and whether it may only be pointed to."""

    name: str
    opaque: bool = False


@dataclass
class Header:
    constants: dict[str, int | float | str] = field(default_factory=dict)
    structs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    functions: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    types: dict[str, Type] = field(
        default_factory=lambda: {name: Type(of) for name, of in SCALARS.items()}
    )


class Reader:
    """A recursive descent over the tokens of the preprocessed headers."""

    def __init__(self, text: str, header: Header) -> None:
        self.tokens = TOKEN.findall(text)
        self.at = 0
        self.header = header

    # ---- tokens

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        found = self.peek() == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            near = " ".join(self.tokens[max(0, self.at - 12) : self.at + 6])
            raise Unreadable(f"expected {token!r} at {self.peek()!r}: ... {near} ...")

    def until(self, *ends: str) -> list[str]:
        found = []
        while self.peek() not in ends:
            if not self.peek():
                raise Unreadable(f"expected one of {ends} before the end")
            found.append(self.take())
        return found

    # ---- declarations

    def read(self) -> None:
        while self.peek():
            if self.accept("typedef"):
                base = self.base_type()
                name, of = self.declarator(base)
                self.header.types.setdefault(name, Type(of, base.opaque))
                self.expect(";")
            elif self.peek() in ("enum", "struct") and self.defines():
                self.base_type()
                self.expect(";")
            else:
                name, of = self.declarator(self.base_type(), function=True)
                self.expect(";")
                result, *parameters = of.split("|")
                self.header.functions[name] = (result, parameters)

    def defines(self) -> bool:
        """Is this a definition (or a mere name) of a type, and no variable's?"""
        ahead = self.tokens[self.at + 1 : self.at + 3]
        return "{" in ahead or ahead[1:] == [";"]

    def base_type(self) -> Type:
        while self.peek() in QUALIFIERS:
            self.take()
        word = self.take()
        if word == "enum":
            if self.peek() != "{":
                self.take()
            if self.peek() == "{":
                self.enumerators()
            found = Type("c_int")
        elif word == "struct":
            found = self.struct()
        elif word == "void":
            found = Type("None")
        elif word in self.header.types:
            found = self.header.types[word]
        else:
            raise Unreadable(f"unknown type {word!r}")
        while self.peek() in QUALIFIERS:
            self.take()
        return found

    def enumerators(self) -> None:
        self.expect("{")
        value = -1
        while not self.accept("}"):
            name = self.take()
            value = value + 1
            if self.accept("="):
                value = int(self.number(self.until(",", "}")))
            self.header.constants[name] = value
            self.accept(",")

    def number(self, tokens: list[str]) -> int | float:
        return number(" ".join(tokens), self.header)

    def struct(self) -> Type:
        name = self.take()
        if not self.accept("{"):
            known = name in self.header.structs
            return Type(name, opaque=not known)
        fields: list[tuple[str, str]] = []
        self.header.structs[name] = fields
        while not self.accept("}"):
            base = self.base_type()
            fields.append(self.declarator(base))
            while self.accept(","):
                fields.append(self.declarator(base))
            self.expect(";")
        return Type(name)

    # ---- declarators: "T", the type, with what stands around the name

    def declarator(self, base: Type, function: bool = False) -> tuple[str, str]:
        of, stars = base, 0
        while self.accept("*"):
            of = Type(pointer(of))
            stars += 1
            while self.peek() in QUALIFIERS:
                self.take()
        if self.accept("("):  # a pointer to a function
            self.expect("*")
            name = self.take() if self.peek() != ")" else ""
            self.expect(")")
            parts = [callback(of.name), *map(callback, self.parameters())]
            return name, f"CFUNCTYPE({', '.join(parts)})"
        name = self.take() if re.match(r"[A-Za-z_]", self.peek()) else ""
        if function:
            return name, "|".join([of.name, *self.parameters()])
        sizes = []
        while self.accept("["):
            sizes.append(self.until("]"))
            self.expect("]")
        for size in reversed(sizes):
            of = Type(f"{of.name} * {int(self.number(size))}" if size else pointer(of))
        if of.opaque and not stars and self.peek() != ";":
            raise Unreadable(f"{name}: an unknown struct as a value")
        return name, of.name

    def parameters(self) -> list[str]:
        self.expect("(")
        found: list[str] = []
        while not self.accept(")"):
            if self.accept("..."):
                continue  # ctypes hands on what it is given
            _, of = self.declarator(self.base_type())
            if of != "None":
                found.append(re.sub(r"^(\w+) \* \d+$", r"POINTER(\1)", of))
            self.accept(",")
        return found


def pointer(of: Type) -> str:
    if of.name == "c_char":
        return "c_char_p"
    if of.opaque or of.name in ("None", "c_void_p"):
        return "c_void_p" if of.opaque or of.name == "None" else "POINTER(c_void_p)"
    return f"POINTER({of.name})"


def callback(name: str) -> str:
    """A text that C gives Python may have no zero at its end: it stays an address."""
    return "c_void_p" if name == "c_char_p" else name


def number(text: str, header: Header) -> int | float:
    """The value of a constant expression."""
    text = re.sub(r"\( *(?:u?int\d+_t|size_t|tr_\w+) *\)", "", text)
    text = re.sub(
        r"\b[A-Z]\w+\b",
        lambda word: str(header.constants.get(word.group(), word.group())),
        text,
    )
    if not re.fullmatch(r"[\d\s.()+\-*/<>|eE]+", text):
        raise Unreadable(f"not a constant: {text}")
    value = eval(text)  # noqa: S307 (digits and operators alone)
    assert isinstance(value, (int, float))
    return value


def preprocess(cc: list[str], include: Path, *flags: str) -> str:
    command = [*cc, "-E", *flags, "-D__attribute__(x)=", "-I", str(include), "-x", "c"]
    source = subprocess.run(
        [*command, str(include / "tranche.h")], capture_output=True, text=True
    )
    if source.returncode != 0:
        raise Unreadable(source.stderr)
    return source.stdout


def own_text(text: str, include: Path) -> str:
    """What comes from our headers, by the marks that the preprocessor leaves."""
    kept, ours = [], False
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            ours = Path(mark.group(1)).is_relative_to(include)
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def macros(include: Path, header: Header) -> None:
    """Constants that are macros: those whose text is a number."""
    for file in [include / "tranche.h", *sorted((include / "tranche").glob("*.h"))]:
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, value in re.findall(r"^#define (TR\w+) +(.+)$", text, re.M):
            try:
                header.constants[name] = number(re.sub(r"//.*", "", value), header)
            except Unreadable:
                continue  # no number


def read(cc: list[str], include: Path) -> Header:
    header = Header()
    Reader(own_text(preprocess(cc, include), include), header).read()
    macros(include, header)
    return header


# ---- writing


def annotation(of: str) -> str:
    if of.startswith("c_char * "):
        return "Text"
    if of == "c_char_p":
        return "Text | None"
    if of.startswith(("CFUNCTYPE", "POINTER")) or " * " in of or of == "c_void_p":
        return "Any"
    if of.startswith("c_"):
        return PYTHON_TYPES.get(of, "int")
    return of


PREAMBLE = '''"""Made by tools/declarations.py from include/tranche.h."""

# ruff: noqa
from __future__ import annotations

from ctypes import *
from typing import Any

Text = bytes  # members have the name "bytes", too
'''


def write_python(header: Header) -> str:
    lines = [PREAMBLE]
    lines += [f"{name} = {value!r}" for name, value in header.constants.items()]
    for name, fields in header.structs.items():
        lines += ["", "", f"class {name}(Structure):"]
        lines += [f"    {member}: {annotation(of)}" for member, of in fields]
        if any(not member.isidentifier() for member, _ in fields):
            raise Unreadable(f"{name}: a member without a name")
    lines.append("")
    for name, fields in header.structs.items():
        lines.append(f"{name}._fields_ = [")
        lines += [f'    ("{member}", {of}),' for member, of in fields]
        lines.append("]")
    lines += [
        "",
        "# name: (result, parameters)",
        "FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {",
    ]
    for name, (result, parameters) in header.functions.items():
        lines.append(f'    "{name}": ({result}, [{", ".join(parameters)}]),')
    return "\n".join([*lines, "}", ""])


def write_layout(header: Header) -> str:
    lines = [
        "// Made by tools/declarations.py: what the compiler makes of the headers.",
        "#include <tranche.h>",
        "",
        "#include <stdio.h>",
        "",
        "int main(void) {",
    ]
    for name in header.constants:
        lines.append(f'    printf("{name} %.17g\\n", (double)({name}));')
    for name, fields in header.structs.items():
        lines.append(f'    printf("{name} %zu\\n", sizeof(struct {name}));')
        for member, _ in fields:
            at = f"offsetof(struct {name}, {member})"
            size = f"sizeof(((struct {name} *)0)->{member})"
            lines.append(f'    printf("{name}.{member} %zu %zu\\n", {at}, {size});')
    return "\n".join([*lines, "    return 0;", "}", ""])


def main() -> int:
    options = argparse.ArgumentParser(description="ctypes of the public headers")
    options.add_argument("--cc", default="cc")
    options.add_argument("--include", type=Path, required=True)
    options.add_argument("--python", type=Path)
    options.add_argument("--layout", type=Path)
    asked = options.parse_args()
    try:
        header = read(asked.cc.split(), asked.include)
        for file, write in ((asked.python, write_python), (asked.layout, write_layout)):
            if file:
                file.write_text(write(header), encoding="utf-8")
    except Unreadable as error:
        print(f"declarations.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
