"""The outer loop: TaskPilot and training, iteration by iteration."""
