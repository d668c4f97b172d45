"""What the rooms say to each other: expressions, records, answers, config."""

__version__ = "0.1.0"
