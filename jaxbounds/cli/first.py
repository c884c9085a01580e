"""The first screen: the purpose of `jaxbounds`, and the commands to type next."""

PURPOSE = """\
jaxbounds checks what learning-theory papers claim: four papers on Transformers,
and papers of your own. It measures a claim, searches for the worst case, and
stores a counterexample where the claim fails."""

FIRST = f"""\
{PURPOSE}

Try one of these commands:

  jaxbounds verify multihead.cor1.3    # a table: it holds, and how loosely
  jaxbounds show multihead.cor1.3      # a text: its forms and their proofs
  jaxbounds guide start                # a page: from an inequality to a verdict

`jaxbounds --help` lists all commands, `jaxbounds guide` all pages.
"""
"""The text that `jaxbounds` prints if it is called without arguments."""

GUIDE = f"""\
{PURPOSE}
Type jaxbounds guide TOPIC, and a page with commands to copy comes out:

"""
"""The text that the first screen prints above the list of the guide's pages."""
