"""What all tests share: naive twins in `models`, and the `..._parts` that the tests of a folder are made of.

Both are on the import path, since pytest's importlib mode puts nothing there.
"""

import sys
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *sorted({str(parts.parent) for parts in HERE.rglob("*_parts.py")})]

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
