"""room: the claims of a paper, measured.

* Section 1 (softmax and its Jacobian), Section 2 (attention): formulas in `model`, claims in
  `statements`
"""
