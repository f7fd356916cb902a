"""What a run leaves: heads and figures, the sum that samples come to and go from, a folder on disk, and runs over seeds."""
