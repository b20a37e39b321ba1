"""How a network is trained, and how its snapshots are taken."""
