"""Leaderboards: scoring runs read back, ranked where they may be compared, with what the ranks are worth."""
