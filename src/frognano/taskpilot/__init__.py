"""Making tasks: snapshot, generate, state, validate, calibrate, refine, admit."""
