"""Pure linear algebra on arrays, one idea per file."""
