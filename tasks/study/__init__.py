"""Studies of reliability: how often a metric prefers the output that people prefer."""
