"""Files that run inside sandboxes: standard library only, Python 3.6 and later, sent as source text."""
