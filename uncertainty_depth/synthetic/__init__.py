"""A synthetic indoor world, rendered by analytic ray casting: solids, textures, rooms, furniture, light, a drive, sensors."""
