"""What the files of a project hold, a module for each kind: read, held to their form, written."""
