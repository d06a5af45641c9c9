"""Predictions beside measurements: what the simulator says where somebody has measured.

Sets are registered functions (`sim.validate.sets`); each makes comparisons, and says of the rest why it
cannot be compared. A number that was used to fit something is marked, and never counted as validation.
"""
