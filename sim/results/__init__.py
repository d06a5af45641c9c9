"""Answers from rows: the Run, its figures, the verdict on the SLO, doubts, and the run folder."""
