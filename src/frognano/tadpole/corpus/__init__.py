"""How Tadpole's pretraining text is made: generated functions, planted bugs, scripted Leaf episodes."""
