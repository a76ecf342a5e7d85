"""Learning: reward, advantage, DPPO loss, batches, update loop, checkpoints."""
