"""What an n-best list says as a whole: pure functions, without torch and ESPnet."""
