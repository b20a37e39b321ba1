"""What the node adds to its network."""
