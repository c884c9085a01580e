"""The ground floor: files, memory, text, and the inside of JAX. No mathematics."""
