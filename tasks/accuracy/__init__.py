"""How often voters and panels are right where the truth is known: labelled photos, and edits that we planted.

Nothing here decides anything about a data set, and no photo is kept: only the answers of models outside are.
"""
