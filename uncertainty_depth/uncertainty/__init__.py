"""The ways to get a sigma: one file each behind one small protocol."""
