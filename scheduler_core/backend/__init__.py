"""What the scheduler knows: cache, snapshot, informers and the scheduling queue.

One thread owns all of it, so nothing here locks.
"""
