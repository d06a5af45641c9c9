"""The command `sim`: verbs that call the API and say what came of it.

Results go to stdout, progress and trouble to stderr. Exit codes: 0 good, 1 an SLO was missed or a repeated
run differs, 2 the user's input, 3 our bug, 130 interrupted.
"""

from sim.cli.app import main

__all__ = ["main"]
