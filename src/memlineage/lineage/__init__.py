"""What follows from the family tree of memories, computed purely: standing, integrity, impact and plans."""
