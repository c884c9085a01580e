"""room: the claims of a paper, as code that measures them.

* Section 1 (softmax and its Jacobian), Section 2 (attention): formulas in `model`, claims in
  `statements`
"""
