"""What is scored and how it is reported: one Evaluation, filled offline and live alike."""
