"""The work itself: plain Python over records, no orchestrator."""
