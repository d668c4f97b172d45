"""The leakage guard: which sources of one set share a clip, a picture or a person with another set."""
