"""Files that users have, as tables. Each reader is a module here."""
