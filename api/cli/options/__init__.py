"""Options that several commands have, and the control database that these commands open.

- `settings`: The command `settings`: the settings of all commands, with their values and meaning.
- `network`: Options with which an operator allows the verification of agents to use the network.
- `workers`: Options with which an operator chooses where the workers of a command run, and how many there are.
- `policy_choices`: The views that a source policy leaves out, before it is set.
- `control_database`: The control database, open until the command ends.
"""
