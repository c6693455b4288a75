"""Work that blocks, in threads that post messages: reading, applying, replaying."""
