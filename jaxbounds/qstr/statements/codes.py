"""The short names of the paper's tasks in its statements, with explanations."""

CODES = {
    "qSTR": "The task qSTR is q-sparse token regression: the label at a position depends on q "
    "tokens, and the prompt says which q tokens.",
    "1STR": "The task 1STR is the paper's task qSTR with one relevant token, q = 1.",
}
"""A dictionary from each short name to its explanation, which `jaxbounds show` prints.

In the simple tasks (such as simple-1STR), all positions of a prompt have equal relevant tokens.
"""
