"""Withdrawing a source or a person: who it is, and everything of it taken out of a workspace and its data sets."""
