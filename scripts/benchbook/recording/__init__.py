"""Run scripts in fresh processes and write what they yield; knows nothing of pages."""
