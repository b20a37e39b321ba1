"""The camera model, rigid transforms, and the projection between points and images."""
