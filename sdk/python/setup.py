"""Refuses to build a package that could not be imported. All other settings are in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

if not Path(__file__).with_name("src").joinpath("rollcall/services.py").exists():
    sys.exit(
        "A checkout contains no generated modules, so rollcall cannot be imported.\n"
        "Run `make sdk NAME=python` at the top of the checkout, then install dist/sdk/rollcall_client-*.whl."
    )

setup()
