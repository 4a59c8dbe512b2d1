"""The parts of tools/bench-user."""
