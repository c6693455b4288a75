"""The pool of spares of a rack: so far its sizing, that is how many spares it needs."""
