"""Measurements of speed; one file per part that is measured."""
