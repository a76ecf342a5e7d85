"""Where code runs: one contract, several backends, the resident runner."""
