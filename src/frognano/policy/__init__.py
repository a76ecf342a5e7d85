"""Who acts: chat endpoints, token engines, chat format and parser."""
