"""Scoring editors on a published data set: outputs, their measurements, judges, and the table of scores."""
