"""What a build would take and give, from what the workspace has measured and, where it has not, from assumptions."""
