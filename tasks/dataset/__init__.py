"""The published data set: its files, its card, and the check of both."""
