"""How the agent acts: five tools, prompt, episode loop."""
