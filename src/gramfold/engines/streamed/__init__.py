"""As many clients as a disk holds, in the memory of a batch of them.

    passes      a pass over the clients for every round: batches are folded, and what is sent next is made of the sum
    personal    one more: batches of heads, each a file of its own

A run that was stopped goes on where it was: the sum is on disk every so many batches, with how many are in it.
"""

from gramfold.engines.streamed.run import run_streamed

__all__ = ["run_streamed"]
