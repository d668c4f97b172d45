"""What a run looks like to a person: the funnel, the target mix, and an HTML report that opens from disk.

Read only: nothing here decides anything, and no number is computed from anything but the workspace. Import the
modules themselves (`tasks.report.funnel` is light, `tasks.report.html` reads pictures).
"""
