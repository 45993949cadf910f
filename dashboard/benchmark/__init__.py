"""``manage.py benchmark pipeline``: the whole product under load, measured from outside.

Only the command imports this package.
"""
