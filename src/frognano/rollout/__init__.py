"""Many episodes: admission, retries, journal, resume."""
