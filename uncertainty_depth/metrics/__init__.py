"""Scores of depth and of its uncertainty: exact functions and one-pass accumulators that share their arithmetic."""
