"""Imports of large modules when they are needed."""

import gc
from importlib import import_module
from typing import Any


def imported(module: str) -> Any:
    """Import a module without garbage collections, which would take a tenth of the time and find nothing."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()
