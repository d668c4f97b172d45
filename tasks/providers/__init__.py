"""Adapters' way to models outside."""
