"""What everything stands on: units, errors, registries and random streams; imports nothing of ours."""
