"""The short names of the paper's tasks in its statements, with explanations."""

CODES = {
    "qSTR": "The paper's task is q-sparse token regression: the label at a position depends on "
    "q tokens, and the prompt says which q tokens.",
    "1STR": "The task is the paper's qSTR with one relevant token, q = 1.",
}
"""A dictionary from each short name to its explanation, which `jaxbounds show` prints.

In the simple tasks (such as simple-1STR), all positions of a prompt have equal relevant tokens.
"""
