"""Statements on the tables of agent jobs in the control database. Times are microseconds since 1970."""

from warehouse.control.database import statements

STATEMENTS = statements(__file__)
