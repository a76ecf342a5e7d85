"""What a task is on disk, pools and splits, the grader."""
