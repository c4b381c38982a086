"""The one error that is meant for a person at the keyboard."""


class InputError(ValueError):
    """What was given cannot be used; the message says where, what is wrong, what was expected."""
