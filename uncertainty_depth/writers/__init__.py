"""Writers of bags: predictions, synthetic worlds and converted data sets."""
