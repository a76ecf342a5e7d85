"""The outer loop: taskpilot and train, iteration by iteration, validation, checkpoint choice.

Import what is needed from its modules (``loop.run``, ``pieces``, ``progress.watching``): they load torch.
"""
