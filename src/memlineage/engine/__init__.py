"""Where the floors meet: every read, write and action passes its one enforcement point."""
