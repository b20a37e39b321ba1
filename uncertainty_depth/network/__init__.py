"""The hourglass network and the folder a trained model lives in."""
