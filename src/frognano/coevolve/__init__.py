"""The outer loop: taskpilot and train, iteration by iteration, validation, checkpoint choice."""
