"""Metrics: arrays in, floats out. No model, no file, no picture store."""
