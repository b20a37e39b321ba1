"""A bag played through both nodes on one machine."""
