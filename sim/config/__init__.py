"""What a user may write: forms, the YAML under them, and how mistakes in it are told."""
