"""What the rooms say to each other: expressions, records, answers, config."""
