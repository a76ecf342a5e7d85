"""Programs that run inside a sandbox on the trusted clean repository, started by ``frognano.taskpilot.bench``.

Python 3.8 or later with pytest; nothing of ours is importable there. Their names begin with ``frog_`` so that they
shadow no module of the repository under study. They are fast, not safe against hostile code: what they report is
a screening, and a task is admitted only by the grader.
"""
