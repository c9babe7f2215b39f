#!/usr/bin/env python3
"""Compares cases.json with Jinja 2, by hand: `pip install jinja2`, then `python3 tests/jinja.py`.

A case with a third element is one where Jinja gives that instead, on purpose (see the crate's documentation)."""

import copy
import json
import pathlib
import sys

import jinja2

table = json.loads(pathlib.Path(__file__).with_name("cases.json").read_text())


def raise_error(message, code=400):
    raise RuntimeError(message)


environment = jinja2.Environment("{%", "%}", "{", "}", "{#", "#}", extensions=["jinja2.ext.do"])
environment.filters["fromjson"] = json.loads


def render(source):
    context = copy.deepcopy(table["context"])
    return environment.from_string(source.strip()).render(raise_error=raise_error, **context).strip()


differences = 0
for source, *expected in table["cases"]:
    found = render(source)
    if found != expected[-1]:
        differences += 1
        print(f"{source}\n  here  {expected[-1]}\n  jinja {found}")
for source, _ in table["errors"]:
    try:
        found = render(source)
    except Exception:  # any error is an error
        continue
    differences += 1
    print(f"{source}\n  here  an error\n  jinja {found}")
print(f"{len(table['cases'])} templates, {len(table['errors'])} faults, {differences} differences")
sys.exit(differences > 0)
